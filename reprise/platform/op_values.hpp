// What the cases of op_cases.hpp are made of: values in host memory, and views of them. For this
// room's .cpp files.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "reprise/base/dtype.hpp"
#include "reprise/device/view.hpp"

namespace reprise::op_values {

// Uniform on [-scale, scale), the same on every machine.
template <class T>
std::vector<T> random_values(std::size_t count, std::uint64_t seed, float scale = 2.0F) {
  std::mt19937_64 draw{seed};
  std::vector<T> values(count);
  for (T& value : values) {
    const auto unit = static_cast<float>(static_cast<std::int64_t>(draw()) >> 40) * 0x1p-23F;
    value = narrow<T>(unit * scale);
  }
  return values;
}

// What a kernel is to write whole: a value that no result has.
template <class T>
std::vector<T> room(std::size_t count) {
  std::vector<T> values(count);
  std::memset(values.data(), 0xa5, count * sizeof(T));
  return values;
}

template <class T>
view<const T> in(const std::vector<T>& values) {
  return {values.data(), values.size()};
}
template <class T>
view<T> to(std::vector<T>& values) {
  return {values.data(), values.size()};
}

inline std::size_t count_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a * b);
}

}  // namespace reprise::op_values
