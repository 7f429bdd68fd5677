#include "apps/reprise/grad_figures.hpp"

#include <fmt/format.h>

#include <array>
#include <string>

namespace reprise::app {

namespace {

nlohmann::json eager_json(const std::array<std::uint64_t, eager_causes>& counts) {
  nlohmann::json by_cause = nlohmann::json::object();
  for (std::size_t i = 0; i < eager_causes; ++i) {
    if (counts[i] != 0) by_cause[std::string{name_of(static_cast<eager_cause>(i))}] = counts[i];
  }
  return by_cause;
}

std::string eager_text(const std::array<std::uint64_t, eager_causes>& counts) {
  std::string text;
  for (std::size_t i = 0; i < eager_causes; ++i) {
    if (counts[i] == 0) continue;
    text += fmt::format(", {} {}", name_of(static_cast<eager_cause>(i)), counts[i]);
  }
  return text.empty() ? ", eager 0" : ", eager by" + text.substr(1);
}

}  // namespace

nlohmann::json as_json(const grad_counts& counts) {
  return {{"forward_captured", counts.forward_capture},
          {"forward_shared", counts.forward_shared},
          {"forward_replayed", counts.forward_replay},
          {"forward_eager", eager_json(counts.eager_forward)},
          {"backward_captured", counts.backward_capture},
          {"backward_replayed", counts.backward_replay},
          {"backward_eager", eager_json(counts.eager_backward)},
          {"stale_replays", counts.stale_replay},
          {"stale_by_pool", counts.stale_by_pool}};
}

void print_calls(std::FILE* to, const grad_counts& counts) {
  fmt::print(to, "  forwards    captured {}, replayed {}{}; replayed again {}\n",
             counts.forward_capture, counts.forward_replay, eager_text(counts.eager_forward),
             counts.stale_replay);
  fmt::print(to, "  backwards   captured {}, replayed {}{}\n", counts.backward_capture,
             counts.backward_replay, eager_text(counts.eager_backward));
}

nlohmann::json as_typed(float value) {
  return nlohmann::json::parse(fmt::format("{}", value));
}

}  // namespace reprise::app
