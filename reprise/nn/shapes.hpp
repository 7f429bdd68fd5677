// What the layers of this room ask of their parameters and inputs; for this room's .cpp files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reprise/replay/signature.hpp"

namespace reprise::nn {

// A pattern of rows of any number and any width.
inline constexpr dims any_rows{any, any};

// Throws usage_error unless the parameter holds f32 of this shape; `role` is "weight" or the like.
void require_shape(const parameter& p, const dims& expected, std::string_view layer,
                   std::string_view role);

// Declares a parameter of this role: trained where it has a gradient buffer, used where it has
// none. Returns whether it is trained.
bool declare(signature& in, std::string role, parameter& p);

inline view<const float> values_of(const parameter& p) {
  return elements_of<const float>(p.value);
}

}  // namespace reprise::nn
