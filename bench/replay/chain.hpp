// The work that is measured: a chain of small kernels, each reading what the one before wrote.
//
// Written once, and walked by a step's body and by the raw CUDA peer alike, so that both launch the
// same kernels on the same shapes in the same order. Read by nvcc too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::bench {

// One node normalises 4 rows of 256 floats: four warps, no more work than a launch is worth.
inline constexpr std::int64_t chain_rows = 4;
inline constexpr std::int64_t chain_width = 256;
inline constexpr std::size_t chain_elements = 1024;
inline constexpr std::size_t chain_bytes = 4096;  // of one staged block
inline constexpr float chain_epsilon = 1e-6F;

static_assert(chain_elements == static_cast<std::size_t>(chain_rows * chain_width));
static_assert(chain_bytes == chain_elements * sizeof(float));

struct chain_memory {
  const float* from;
  float* ping;
  float* pong;
  float* out;
};

// Calls node(from, to) for each of `nodes` nodes, one at least: from -> ping -> pong -> ... -> out.
template <class Node>
void walk_chain(std::int64_t nodes, const chain_memory& memory, Node&& node) {
  const float* from = memory.from;
  for (std::int64_t i = 0; i < nodes; ++i) {
    float* const between = i % 2 == 0 ? memory.ping : memory.pong;
    float* const to = i + 1 == nodes ? memory.out : between;
    node(from, to);
    from = to;
  }
}

}  // namespace reprise::bench
