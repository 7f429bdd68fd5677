// What forwards and backwards cost that are replayed, each beside the bare launch of as many nodes;
// and those that are not, beside what has to be done anyway.
#pragma once

#include <cstddef>
#include <vector>

#include "bench/grad/grad_figure.hpp"
#include "bench/grad/subject.hpp"
#include "bench/measure/progress.hpp"

namespace reprise::bench {

// Inputs of 64 KiB and a weight of 4 MiB, of which a replay copies nothing.
inline constexpr std::int64_t call_in = 16384;
inline constexpr std::int64_t call_out = 64;
inline constexpr std::array call_inputs{1, 4, 16};
inline constexpr double forward_limit_us = 5.0;  // over the bare launch

struct call_costs {
  std::vector<grad_figure> figures;
  std::vector<op_counts> ops;
};

// `native_stream` is null where there is no bare launch; the stream is idle at the end.
call_costs measure_calls(pool& memory, const call_timer& timer, void* native_stream, int rounds,
                         const progress& tell);

}  // namespace reprise::bench
