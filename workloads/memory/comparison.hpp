// Two runs of one scenario, compared bit for bit: where they first differ, in words.
//
// Each says what differs, which element it is and the two values; empty: all bits are equal. The
// bits of what is NaN are compared as any others.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/memory/training.hpp"

namespace reprise::memory {

std::string difference(std::string_view what, std::span<const float> a, std::span<const float> b);

// Weights and moments, by the names of the parameters. Of two trainings of the same options; they
// wait for both.
std::string difference(const training& a, const training& b);

// Of one sample: the banks behind its last step, layer by layer, and its text.
struct sample_result {
  std::string text;
  std::vector<std::vector<std::byte>> banks;
};
std::string difference(const sample_result& a, const sample_result& b);

}  // namespace reprise::memory
