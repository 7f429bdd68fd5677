// What the tests of this room share: a device at work, numbers, and comparing bits.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "reprise/nn/network.hpp"
#include "reprise/nn/parameters.hpp"
#include "tests/replay/support.hpp"

namespace reprise::test {

// On [-1, 1), the same for the same seed.
inline std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 draw{seed};
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(draw() >> 8) * 0x1p-23F - 1.0F;
  return values;
}

template <class T>
buffer<T> on_device(bench& on, const std::vector<T>& values) {
  buffer<T> made{on.memory, values.size(), on.work};
  upload(on.work, values, made.all());
  return made;
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline std::vector<float> host_of(bench& on, const tensor<float>& from) {
  return read_back<float>(on.work, from.get());
}

inline std::vector<float> gradient_of_parameter(bench& on, const parameter& p) {
  EXPECT_TRUE(p.has_grad);
  return read_back<float>(on.work, elements_of<const float>(p.grad));
}

// A tensor of these values, as a loss gives one to a network's backward.
inline tensor<float> tensor_of(bench& on, const std::vector<float>& values, const dims& shape) {
  tensor<float> made = make_tensor<float>(on.memory, shape, on.work);
  upload(on.work, values, made.get());
  return made;
}

class on_each_device : public testing::TestWithParam<std::string> {
 protected:
  bench here{GetParam()};
  byte_budget budget{byte_budget::unlimited};
};

inline std::string name_of_device(const testing::TestParamInfo<std::string>& info) {
  return test_name(info.param);
}

}  // namespace reprise::test
