#include "reprise/tap/drain_choice.hpp"

#include <algorithm>
#include <bit>

namespace reprise {

namespace {

constexpr double weight_of_the_newest = 0.25;
constexpr int smallest_log2 = 14;  // all below 16 KiB are alike: their start-up is what counts

}  // namespace

drain_choice::of_size& drain_choice::sizes_like(std::uint64_t bytes) {
  const int log2 = static_cast<int>(std::bit_width(bytes)) - 1;
  const int step = std::max(0, log2 - smallest_log2) / 2;
  return sizes_[static_cast<std::size_t>(std::min(step, static_cast<int>(sizes_.size()) - 1))];
}

drain_way drain_choice::next(std::uint64_t bytes) {
  if (how_ != drain_way::measured) return how_;
  of_size& like = sizes_like(bytes);
  ++like.rounds;
  const bool kernel_is_faster = like.kernel.bytes_per_us > like.engine.bytes_per_us;
  bool kernel = kernel_is_faster;
  if (like.engine.tried < tries) {
    kernel = false;
  } else if (like.kernel.tried < tries) {
    kernel = true;
  } else if (like.rounds % rounds_between_trials == 0) {
    kernel = !kernel_is_faster;
  }
  ++(kernel ? like.kernel : like.engine).tried;
  return kernel ? drain_way::kernel : drain_way::copy_engine;
}

void drain_choice::took(drain_way way, std::uint64_t bytes, double us) {
  if (us <= 0 || bytes == 0) return;
  of_size& like = sizes_like(bytes);
  double& rate = (way == drain_way::kernel ? like.kernel : like.engine).bytes_per_us;
  const double now = static_cast<double>(bytes) / us;
  rate = rate == 0 ? now : rate + weight_of_the_newest * (now - rate);
}

}  // namespace reprise
