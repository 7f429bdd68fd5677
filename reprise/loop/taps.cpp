#include "reprise/loop/taps.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

tap copied(site at, std::string name, const tensor_ref& what) {
  if (!(what.strides == contiguous_strides(what.shape))) {
    throw usage_error{
        fmt::format("tap '{}' is not contiguous; mark a contiguous copy of it", name)};
  }
  tap made{std::move(name), what.type, what.shape, std::vector<std::byte>(what.bytes())};
  if (!made.bytes.empty()) copy_bytes(at, what.data, made.bytes.data(), made.bytes.size());
  return made;
}

}  // namespace

void mark_taps::on_mark(step_scope& run, point where, const tensor_ref& what) {
  taps_.push_back(copied(run, fmt::format("{} {}", where.kind, where.layer), what));
}

std::vector<tap> mark_taps::taken() {
  return std::exchange(taps_, {});
}

std::vector<tap> outputs_of(site at, const step& what, const step_result& done) {
  std::vector<tap> taps;
  const auto outputs = what.declared().outputs();
  for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
    taps.push_back(copied(at, outputs[slot].name, done.table->leased(done.replay, slot, nullptr)));
  }
  at.stream.synchronize(at.place);
  return taps;
}

}  // namespace reprise
