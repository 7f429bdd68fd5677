#include "tests/nn/host_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reprise/base/dtype.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random_uniform.hpp"

namespace reprise::test {

host_values widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

host_values rounded_to_bf16(const std::vector<float>& values) {
  host_values rounded;
  for (const float value : values) {
    rounded.push_back(static_cast<double>(widen(narrow<bf16>(value))));
  }
  return rounded;
}

host_values host_linear(const host_values& x, const host_values& w, const host_values& bias,
                        std::size_t k) {
  const std::size_t m = x.size() / k;
  const std::size_t n = w.size() / k;
  host_values y(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = bias.empty() ? 0 : bias[j];
      for (std::size_t l = 0; l < k; ++l) sum += x[i * k + l] * w[j * k + l];
      y[i * n + j] = sum;
    }
  }
  return y;
}

host_values host_layer_norm(const host_values& x, const host_values& gain, const host_values& bias,
                            double eps) {
  const std::size_t width = gain.size();
  host_values y(x.size());
  for (std::size_t first = 0; first < x.size(); first += width) {
    double mean = 0;
    double variance = 0;
    for (std::size_t l = 0; l < width; ++l) mean += x[first + l];
    mean /= static_cast<double>(width);
    for (std::size_t l = 0; l < width; ++l) variance += std::pow(x[first + l] - mean, 2);
    variance /= static_cast<double>(width);
    for (std::size_t l = 0; l < width; ++l) {
      y[first + l] = (x[first + l] - mean) / std::sqrt(variance + eps) * gain[l] + bias[l];
    }
  }
  return y;
}

host_values host_batch_norm(const host_values& x, const host_values& gain, const host_values& bias,
                            double eps) {
  const std::size_t width = gain.size();
  const auto m = static_cast<double>(x.size() / width);
  host_values means(width);
  host_values variances(width);
  for (std::size_t i = 0; i < x.size(); ++i) means[i % width] += x[i] / m;
  for (std::size_t i = 0; i < x.size(); ++i) {
    variances[i % width] += std::pow(x[i] - means[i % width], 2) / m;
  }
  return host_frozen_norm(x, gain, bias, means, variances, eps);
}

host_values host_frozen_norm(const host_values& x, const host_values& gain, const host_values& bias,
                             const host_values& means, const host_values& variances, double eps) {
  host_values y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t j = i % gain.size();
    y.push_back((x[i] - means[j]) / std::sqrt(variances[j] + eps) * gain[j] + bias[j]);
  }
  return y;
}

host_values host_gelu(const host_values& x) {
  const double slope = std::sqrt(2 / std::acos(-1.0));
  host_values y;
  for (const double v : x) {
    y.push_back(v / 2 * (1 + std::tanh(slope * (v + 0.044715 * v * v * v))));
  }
  return y;
}

host_values host_silu(const host_values& x) {
  host_values y;
  for (const double v : x) y.push_back(v / (1 + std::exp(-v)));
  return y;
}

host_values host_dropout(const host_values& x, float rate, const philox_counter& counter) {
  host_values y;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto words = ops::philox(counter.seed(), counter.next() + i / 4, 0);
    const bool kept = ops::uniform_of(words.at[i % 4]) >= rate;
    y.push_back(kept ? x[i] / (1 - static_cast<double>(rate)) : 0);
  }
  return y;
}

double host_cross_entropy(const host_values& logits, const std::vector<std::int32_t>& targets) {
  const std::size_t classes = logits.size() / targets.size();
  double sum = 0;
  double counted = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (targets[i] < 0) continue;
    double exponentials = 0;
    for (std::size_t l = 0; l < classes; ++l) exponentials += std::exp(logits[i * classes + l]);
    sum += std::log(exponentials) - logits[i * classes + static_cast<std::size_t>(targets[i])];
    counted += 1;
  }
  return counted == 0 ? 0 : sum / counted;
}

double host_binary_cross_entropy(const host_values& logits, const host_values& targets) {
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double p = 1 / (1 + std::exp(-logits[i]));
    sum -= targets[i] * std::log(p) + (1 - targets[i]) * std::log(1 - p);
  }
  return sum / static_cast<double>(logits.size());
}

double host_squared_error(const host_values& x, const host_values& target) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += (x[i] - target[i]) * (x[i] - target[i]);
  return sum / static_cast<double>(x.size());
}

double dot(const host_values& a, const host_values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void expect_near(const std::vector<float>& actual, const host_values& expected, const char* what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  double largest = 1;
  for (const double value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(actual[i]), expected[i], 3e-6 * largest)
        << what << ", element " << i;
  }
}

host_values central_differences(const std::function<double(const host_values&)>& f, host_values x) {
  constexpr double h = 1e-4;
  host_values gradient;
  for (double& at : x) {
    const double here = at;
    at = here + h;
    const double above = f(x);
    at = here - h;
    gradient.push_back((above - f(x)) / (2 * h));
    at = here;
  }
  return gradient;
}

}  // namespace reprise::test
