// The sum over many elements, as losses and the norm of gradients form it: of each 4096 neighbours
// in 1024 slots, then of these sums, in their order, in 1024 slots again (slot_sum.hpp). The order
// is fixed by the number of elements alone; total_sum.cuh has the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr std::int64_t total_chunk = 4096;

constexpr std::int64_t total_chunks(std::size_t elements) {
  return (static_cast<std::int64_t>(elements) + total_chunk - 1) / total_chunk;
}

// What a CUDA body needs for it.
template <class T>
constexpr std::size_t total_workspace(std::size_t elements) {
  return static_cast<std::size_t>(total_chunks(elements)) * sizeof(T);
}

// Of term(i), a T, for i below `elements`, on the CPU.
template <class T = float, class Term>
T total_sum(const cpu_call& call, std::size_t elements, const Term& term) {
  const auto count = static_cast<std::int64_t>(elements);
  std::vector<T> sums(static_cast<std::size_t>(total_chunks(elements)));
  const auto chunks = static_cast<std::int64_t>(sums.size());
  call.parallel_for(chunks, 8, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t chunk = first; chunk < last; ++chunk) {
      const std::int64_t begin = chunk * total_chunk;
      sums[static_cast<std::size_t>(chunk)] = slot_sum<total_slots, T>(
          std::min(total_chunk, count - begin), [&](std::int64_t l) { return term(begin + l); });
    }
  });
  return slot_sum<total_slots, T>(
      chunks, [&](std::int64_t chunk) { return sums[static_cast<std::size_t>(chunk)]; });
}

}  // namespace reprise::REPRISE_BODIES::ops
