#include "scenarios/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

std::vector<scenario> in_order() {
  std::vector<scenario> all;
  for (const auto& of_file : {stream_scenarios,         pool_scenarios,
                              capture_memory_scenarios, graph_scenarios,
                              executable_scenarios,     end_of_life_scenarios,
                              device_driven_scenarios,  host_memory_scenarios,
                              host_call_scenarios,      capturing_thread_scenarios,
                              hand_over_scenarios,      step_scenarios,
                              queued_step_scenarios,    branch_scenarios,
                              random_draw_scenarios,    interleaved_loop_scenarios,
                              cached_step_scenarios,    chained_step_scenarios,
                              fact_scenarios,           failure_scenarios,
                              grad_scenarios,           grad_memory_scenarios,
                              decode_scenarios,         tap_scenarios}) {
    std::ranges::move(of_file(), std::back_inserter(all));
  }
  return all;
}

}  // namespace

std::span<const scenario> all_scenarios() {
  static const std::vector<scenario> all = in_order();
  return all;
}

const scenario* find_scenario(std::string_view name) {
  const auto found = std::ranges::find(all_scenarios(), name, &scenario::name);
  return found == all_scenarios().end() ? nullptr : &*found;
}

void require(bool condition, std::string_view what, std::source_location from) {
  if (condition) return;
  throw wrong_result{fmt::format("wrong result: {} ({})", what, place_text(from))};
}

}  // namespace reprise::scenarios
