// What a layer is: a differentiable op (reprise/grad/graphed_op.hpp) with an input `x` and an
// output `y` of f32 beside whatever else it has, of which nothing may be wanted.
//
// One that says `static constexpr bool only_in_training = true` is the identity in inference, and
// left out of it; one that has `in_inference()` is that other layer there.
#pragma once

#include <concepts>

#include "reprise/grad/graphed_op.hpp"

namespace reprise::nn {

template <class L>
concept layer = differentiable<L> && requires(const L& l) {
  { l.x } -> std::convertible_to<input<float>>;
  { l.y } -> std::convertible_to<output<float>>;
};

template <class L>
concept changes_in_inference = layer<L> && requires(const L& l) {
  { l.in_inference() } -> layer;
};

template <layer L>
constexpr bool is_only_in_training() {
  if constexpr (requires { L::only_in_training; }) return L::only_in_training;
  return false;
}

}  // namespace reprise::nn
