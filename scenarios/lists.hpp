// The scenarios of each file; scenario.cpp puts them in order. For this folder's .cpp files.
#pragma once

#include <vector>

#include "scenarios/scenario.hpp"

namespace reprise::scenarios {

std::vector<scenario> stream_scenarios();
std::vector<scenario> pool_scenarios();
std::vector<scenario> capture_memory_scenarios();
std::vector<scenario> graph_scenarios();
std::vector<scenario> executable_scenarios();
std::vector<scenario> end_of_life_scenarios();
std::vector<scenario> device_driven_scenarios();
std::vector<scenario> host_memory_scenarios();
std::vector<scenario> host_call_scenarios();
std::vector<scenario> capturing_thread_scenarios();
std::vector<scenario> hand_over_scenarios();
std::vector<scenario> step_scenarios();
std::vector<scenario> queued_step_scenarios();
std::vector<scenario> branch_scenarios();
std::vector<scenario> random_draw_scenarios();
std::vector<scenario> interleaved_loop_scenarios();
std::vector<scenario> cached_step_scenarios();
std::vector<scenario> chained_step_scenarios();
std::vector<scenario> fact_scenarios();
std::vector<scenario> failure_scenarios();
std::vector<scenario> grad_scenarios();
std::vector<scenario> grad_memory_scenarios();
std::vector<scenario> decode_scenarios();
std::vector<scenario> tap_scenarios();

}  // namespace reprise::scenarios
