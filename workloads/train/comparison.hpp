// Two runs of one scenario, compared bit for bit: where they first differ, in words.
//
// Each says what differs, which element it is and the two values; empty: all bits are equal. The
// bits of what is NaN are compared as any others.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "workloads/train/training.hpp"

namespace reprise::train {

std::string difference(std::string_view what, std::span<const float> a, std::span<const float> b);

// Losses, the norm of the gradients, the scale, and whether the window was applied.
std::string difference(const window_result& a, const window_result& b);

// All that training changes, parameters by their names. Of two trainings of the same options; waits
// for both.
std::string difference(const training& a, const training& b);

std::string difference(const evaluation& a, const evaluation& b);

// Of the same images.
std::string difference(std::span<const prediction> a, std::span<const prediction> b);

}  // namespace reprise::train
