#include "bench/sdm/sdm_figure.hpp"

#include <fmt/format.h>

namespace reprise::bench {

std::optional<double> sdm_figure::floor_us() const {
  if (!floor_bytes || bytes_per_us <= 0) return std::nullopt;
  return static_cast<double>(*floor_bytes) / bytes_per_us;
}

std::optional<double> sdm_figure::over_floor() const {
  const std::optional<double> floor = floor_us();
  return floor ? std::optional{us / *floor} : std::nullopt;
}

std::optional<bool> sdm_figure::within() const {
  return limit_us && is_judged ? std::optional{us <= *limit_us} : std::nullopt;
}

std::string sdm_step_counts::failure() const {
  const bool replayed = replays.captured == 1 && replays.replayed + 1 == runs && replays.eager == 0;
  const bool ran = eager.captured + eager.replayed == 0 && eager.eager == eager_runs;
  if (!replayed || !ran) {
    return fmt::format(
        "{}: of {} runs {} were captured, {} replayed and {} eager, and of {} eager ones {} ran "
        "so; one capture and replays were planned, so mend that before reading its figures",
        what, runs, replays.captured, replays.replayed, replays.eager, eager_runs, eager.eager);
  }
  if (!equal) {
    return fmt::format(
        "{}: what it wrote differs from that of eager runs; its figures are of other work, so "
        "report it with the command that showed it",
        what);
  }
  return {};
}

}  // namespace reprise::bench
