// Which parameters of a set have gradients: what a step over a set runs on, an update or what comes
// before one. Each set of them that occurs has a recording of its own.
#pragma once

#include <cstddef>
#include <vector>

#include "reprise/nn/parameters.hpp"

namespace reprise::nn {

// Neighbouring parameters that have gradients, as elements of their set.
struct updated_span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// In the order of the set; empty when no parameter has a gradient.
std::vector<updated_span> updated_spans(const parameter_set& set);
bool has_gradients(const parameter_set& set);

// Makes which parameters have gradients a part of the key. The set outlives the signature.
void declare_gradients(signature& in, const parameter_set& set);

// The span of what lies as parameter_set::values does.
inline view<float> part_of(view<float> all, const updated_span& span) {
  return all.subview(span.begin, span.end - span.begin);
}

}  // namespace reprise::nn
