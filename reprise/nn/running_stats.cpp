#include "reprise/nn/running_stats.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise::nn {

namespace {

std::int64_t validated(std::int64_t width) {
  if (width >= 1) return width;
  throw usage_error{
      fmt::format("running_stats: {} columns have no statistics; give 1 at least", width)};
}

void upload(stream_ref stream, const std::vector<float>& from, view<float> to) {
  copy(stream, read<float>{view<const float>{from.data(), from.size()}}, write<float>{to});
}

}  // namespace

running_stats::running_stats(pool& memory, std::int64_t width, stream_ref stream)
    : width_{validated(width)}, memory_{memory, 2 * columns(), stream} {
  fill(stream, write<float>{means()}, 0.0F);
  fill(stream, write<float>{variances()}, 1.0F);
}

stored_stats running_stats::to_host(stream_ref stream) const {
  stored_stats stored{std::vector<float>(columns()), std::vector<float>(columns())};
  const auto download = [&](view<float> from, std::vector<float>& to) {
    copy(stream, read<float>{from}, write<float>{view<float>{to.data(), to.size()}});
  };
  download(means(), stored.means);
  download(variances(), stored.variances);
  stream.synchronize();
  return stored;
}

void running_stats::from_host(stream_ref stream, const stored_stats& stored) {
  if (stored.means.size() != columns() || stored.variances.size() != columns()) {
    throw usage_error{
        fmt::format("running_stats: {} means and {} variances are stored, and there are {} columns "
                    "here; give those of one layer",
                    stored.means.size(), stored.variances.size(), width_)};
  }
  upload(stream, stored.means, means());
  upload(stream, stored.variances, variances());
}

}  // namespace reprise::nn
