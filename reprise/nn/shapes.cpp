#include "reprise/nn/shapes.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"

namespace reprise::nn {

void require_shape(const parameter& p, const dims& expected, std::string_view layer,
                   std::string_view role) {
  if (p.value.type == dtype::f32 && p.value.shape == expected) return;
  throw usage_error{
      fmt::format("layer '{}': its {} is {} of shape {} and must be {} of shape {}; "
                  "give it one of that shape",
                  layer, role, name_of(p.value.type), to_string(p.value.shape), name_of(dtype::f32),
                  to_string(expected))};
}

bool declare(signature& in, std::string role, parameter& p) {
  const bool trained = p.grad.data != nullptr;
  if (trained) {
    in.trains(std::move(role), p);
  } else {
    in.uses(std::move(role), p);
  }
  return trained;
}

}  // namespace reprise::nn
