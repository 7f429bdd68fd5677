// What a backward does to a gradient buffer that a parameter owns. Kernels read it from a device
// word, so that one recording serves all three.
#pragma once

#include <cstdint>
#include <string_view>

#include "reprise/base/portable.hpp"

namespace reprise {

// write: the sum takes the place of what is there, which is not read. add: it is added to that.
// leave: the buffer is neither written nor read; a word that is none of the three is taken as this.
enum class gradient_rule : std::int32_t { write, add, leave };

constexpr std::string_view name_of(gradient_rule rule) {
  switch (rule) {
    case gradient_rule::write: return "write";
    case gradient_rule::add: return "add";
    case gradient_rule::leave: return "leave";
  }
  return "?";
}

// What a word in device memory says.
REPRISE_HD constexpr gradient_rule gradient_rule_of(std::int32_t word) {
  return word == 0 ? gradient_rule::write : word == 1 ? gradient_rule::add : gradient_rule::leave;
}

// What the buffer holds after `write` or `add`: the finished sum, or old + sum, rounded once. `old`
// counts under `add` alone; under `write` give anything. On the CPU; kernels have ops/put_sum.cuh.
inline float put(gradient_rule rule, float old, float sum) {
  return rule == gradient_rule::add ? old + sum : sum;
}

}  // namespace reprise
