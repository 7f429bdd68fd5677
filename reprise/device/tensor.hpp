// Shapes and borrowed tensors: what schemas, marks and bindings speak.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "reprise/base/dtype.hpp"

namespace reprise {

// In a shape pattern: this extent may vary from run to run; it becomes part of the key.
inline constexpr std::int64_t any = -1;

// Extents (or strides) of a tensor, outermost first, in elements. At most six.
struct dims {
  static constexpr int max_rank = 6;

  std::array<std::int64_t, max_rank> extent{};
  int rank = 0;

  constexpr dims() = default;
  constexpr dims(std::initializer_list<std::int64_t> extents) {
    for (std::int64_t e : extents) extent[static_cast<std::size_t>(rank++)] = e;
  }

  constexpr std::int64_t operator[](int axis) const {
    return extent[static_cast<std::size_t>(axis)];
  }
  constexpr std::size_t count() const {
    std::size_t product = 1;
    for (int i = 0; i < rank; ++i) product *= static_cast<std::size_t>((*this)[i]);
    return product;
  }
  constexpr bool operator==(const dims&) const = default;
};

// Row-major strides of a contiguous tensor of this shape.
constexpr dims contiguous_strides(const dims& shape) {
  dims strides = shape;
  std::int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides.extent[static_cast<std::size_t>(i)] = step;
    step *= shape[i];
  }
  return strides;
}

// "[4, 256]"; `any` is written as "any".
std::string to_string(const dims& shape);

// A tensor that somebody else owns.
struct tensor_ref {
  std::byte* data = nullptr;
  dtype type = dtype::f32;
  dims shape;
  dims strides;

  std::size_t bytes() const { return shape.count() * size_of(type); }  // of a contiguous tensor
};

}  // namespace reprise
