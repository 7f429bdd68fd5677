// The formulas of the layers in double, and gradients by central differences: what the gradients
// of graphed ops are held to. Plain loops; nothing here is shared with the kernels but the random
// words of dropout.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "reprise/replay/philox_counter.hpp"

namespace reprise::test {

using host_values = std::vector<double>;

host_values widened(const std::vector<float>& values);
// Each rounded to bf16.
host_values rounded_to_bf16(const std::vector<float>& values);

// x [m, k], w [n, k], bias [n] or empty.
host_values host_linear(const host_values& x, const host_values& w, const host_values& bias,
                        std::size_t k);
host_values host_layer_norm(const host_values& x, const host_values& gain, const host_values& bias,
                            double eps);
// By the statistics of the columns of x, and by given ones.
host_values host_batch_norm(const host_values& x, const host_values& gain, const host_values& bias,
                            double eps);
host_values host_frozen_norm(const host_values& x, const host_values& gain, const host_values& bias,
                             const host_values& means, const host_values& variances, double eps);
host_values host_gelu(const host_values& x);
host_values host_silu(const host_values& x);
host_values host_dropout(const host_values& x, float rate, const philox_counter& counter);
double host_cross_entropy(const host_values& logits, const std::vector<std::int32_t>& targets);
double host_binary_cross_entropy(const host_values& logits, const host_values& targets);
double host_squared_error(const host_values& x, const host_values& target);

// The sum of the products of two.
double dot(const host_values& a, const host_values& b);

// Fails the test unless each is within 3e-6 of the largest of its kind, or of 1: a sum of f32
// rounds each of its at most 70 terms, of one size, to 6e-8 of themselves, mostly up and down; e^x
// and log, to as much. A wrong term is off by a tenth and more.
void expect_near(const std::vector<float>& actual, const host_values& expected, const char* what);

// The gradient of `f` at `x`: (f(x + h) - f(x - h)) / 2h in each direction, with h = 1e-4. What is
// left of the third derivative is under 1e-8 of it, and of rounding under 1e-11 of f: nothing
// beside what f32 rounds.
host_values central_differences(const std::function<double(const host_values&)>& f, host_values x);

}  // namespace reprise::test
