#include "reprise/grad/counts.hpp"

#include <fmt/format.h>

#include <numeric>

namespace reprise {

std::string_view name_of(eager_cause cause) {
  switch (cause) {
    case eager_cause::key: return "key";
    case eager_cause::capture_failed: return "capture_failed";
    case eager_cause::released: return "released";
    case eager_cause::backward: return "backward";
    case eager_cause::precision: return "precision";
    case eager_cause::suspended: return "suspended";
    case eager_cause::hold: return "hold";
    case eager_cause::observed: return "observed";
  }
  return "?";
}

grad_counts& grad_counts::operator+=(const grad_counts& other) {
  forward_capture += other.forward_capture;
  forward_shared += other.forward_shared;
  forward_replay += other.forward_replay;
  backward_capture += other.backward_capture;
  backward_replay += other.backward_replay;
  stale_replay += other.stale_replay;
  stale_by_pool += other.stale_by_pool;
  inference += other.inference;
  stale_us += other.stale_us;
  for (std::size_t i = 0; i < eager_causes; ++i) {
    eager_forward[i] += other.eager_forward[i];
    eager_backward[i] += other.eager_backward[i];
  }
  return *this;
}

grad_counts& grad_counts::operator-=(const grad_counts& before) {
  forward_capture -= before.forward_capture;
  forward_shared -= before.forward_shared;
  forward_replay -= before.forward_replay;
  backward_capture -= before.backward_capture;
  backward_replay -= before.backward_replay;
  stale_replay -= before.stale_replay;
  stale_by_pool -= before.stale_by_pool;
  inference -= before.inference;
  stale_us -= before.stale_us;
  for (std::size_t i = 0; i < eager_causes; ++i) {
    eager_forward[i] -= before.eager_forward[i];
    eager_backward[i] -= before.eager_backward[i];
  }
  return *this;
}

std::uint64_t grad_counts::eager_forwards() const {
  return std::accumulate(eager_forward.begin(), eager_forward.end(), std::uint64_t{0});
}
std::uint64_t grad_counts::eager_backwards() const {
  return std::accumulate(eager_backward.begin(), eager_backward.end(), std::uint64_t{0});
}

namespace {

std::string eager_text(const std::array<std::uint64_t, eager_causes>& by_cause,
                       std::uint64_t total) {
  if (total == 0) return "0 eager";
  std::string causes;
  for (std::size_t i = 0; i < eager_causes; ++i) {
    if (by_cause[i] == 0) continue;
    if (!causes.empty()) causes += ", ";
    causes += fmt::format("{} {}", name_of(static_cast<eager_cause>(i)), by_cause[i]);
  }
  return fmt::format("{} eager ({})", total, causes);
}

}  // namespace

std::string text_of(const grad_counts& counts) {
  return fmt::format(
      "{} forwards: {} captured, {} shared, {} replayed, {}; {} backwards: {} captured, {} "
      "replayed, {}; {} stale replays ({} by pool order), {:.0f} us; {} inferences",
      counts.forwards(), counts.forward_capture, counts.forward_shared, counts.forward_replay,
      eager_text(counts.eager_forward, counts.eager_forwards()), counts.backwards(),
      counts.backward_capture, counts.backward_replay,
      eager_text(counts.eager_backward, counts.eager_backwards()), counts.stale_replay,
      counts.stale_by_pool, counts.stale_us, counts.inference);
}

}  // namespace reprise
