// The layers of train_network, forward and backward.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "reprise/ops/gelu.hpp"
#include "reprise/ops/math.hpp"
#include "workloads/train/denoiser/network.hpp"

namespace reprise::denoise {

namespace {

constexpr std::int64_t elements_at_once = 4096;

using math::f32x8;

// body(first, last) for pieces of `size` elements.
template <class Body>
void in_pieces(crew& with, std::size_t size, Body&& body) {
  const auto count = static_cast<std::int64_t>(size);
  with.each((count + elements_at_once - 1) / elements_at_once, [&](std::int64_t piece) {
    body(piece * elements_at_once, std::min(count, (piece + 1) * elements_at_once));
  });
}

f32x8 load(const std::vector<float>& from, std::int64_t at) {
  f32x8 eight;
  std::memcpy(&eight, from.data() + at, sizeof eight);
  return eight;
}

void store(const f32x8& eight, std::vector<float>& to, std::int64_t at) {
  std::memcpy(to.data() + at, &eight, sizeof eight);
}

}  // namespace

void train_network::multiply(const rows& x, std::size_t matrix, rows& y, bool add) {
  const trained& w = weights_[matrix];
  y.resize(static_cast<std::size_t>(batch_ * w.out));
  product(crew_, batch_, w.out, w.in, {x.data(), w.in, 1}, w.value.data(), y.data(), add);
}

void train_network::add_bias(rows& y, std::size_t bias) {
  const rows& b = weights_[bias].value;
  const auto width = static_cast<std::int64_t>(b.size());
  crew_.each(batch_, [&](std::int64_t row) {
    float* const to = y.data() + row * width;
    for (std::int64_t j = 0; j < width; ++j) to[j] += b[static_cast<std::size_t>(j)];
  });
}

// The gradient of the matrix: x^T dy.
void train_network::multiply_back(const rows& x, const rows& dy, std::size_t matrix) {
  trained& w = weights_[matrix];
  product(crew_, w.in, w.out, batch_, {x.data(), 1, w.in}, dy.data(), w.gradient.data(), false);
}

// The gradient of what went in: dy w^T.
void train_network::spread_back(const rows& dy, std::size_t matrix, rows& dx, bool add) {
  const trained& w = weights_[matrix];
  transposed_.resize(w.value.size());
  transpose(crew_, w.in, w.out, w.value.data(), transposed_.data());
  dx.resize(static_cast<std::size_t>(batch_ * w.in));
  product(crew_, batch_, w.in, w.out, {dy.data(), w.out, 1}, transposed_.data(), dx.data(), add);
}

void train_network::bias_back(const rows& dy, std::size_t bias) {
  trained& w = weights_[bias];
  crew_.each(w.out / product_columns, [&](std::int64_t piece) {
    const std::int64_t first = piece * product_columns;
    float sums[product_columns] = {};
    for (std::int64_t row = 0; row < batch_; ++row) {
      const float* const from = dy.data() + row * w.out + first;
      for (std::int64_t j = 0; j < product_columns; ++j) sums[j] += from[j];
    }
    std::copy_n(sums, product_columns, w.gradient.data() + first);
  });
}

void train_network::activate(const rows& x, rows& y) {
  y.resize(x.size());
  in_pieces(crew_, x.size(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += 8) {
      store(ops::gelu_of<f32x8>(load(x, i)), y, i);
    }
  });
}

// With s = 1 / (1 + e^-w), w = 2 sqrt(2 / pi) (x + 0.044715 x^3): the derivative of x s.
void train_network::activate_back(const rows& x, rows& dy) {
  in_pieces(crew_, x.size(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += 8) {
      const f32x8 v = load(x, i);
      const f32x8 s =
          1.0F / (1.0F + math::exp<f32x8>(-ops::gelu_slope * v * (1.0F + ops::gelu_cubic * v * v)));
      const f32x8 inner = ops::gelu_slope * (1.0F + 3.0F * ops::gelu_cubic * v * v);
      store(load(dy, i) * (s + v * s * (1.0F - s) * inner), dy, i);
    }
  });
}

void train_network::normalize(const rows& x, const norm& with, norm_kept& kept) {
  const rows& gain = weights_[with.gain].value;
  const rows& bias = weights_[with.bias].value;
  const auto width = static_cast<std::int64_t>(gain.size());
  kept.normed.resize(x.size());
  kept.out.resize(x.size());
  kept.inverse.resize(static_cast<std::size_t>(batch_));
  crew_.each(batch_, [&](std::int64_t row) {
    const float* const from = x.data() + row * width;
    double sum = 0;
    for (std::int64_t j = 0; j < width; ++j) sum += static_cast<double>(from[j]);
    const double mean = sum / static_cast<double>(width);
    double squares = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const double off = static_cast<double>(from[j]) - mean;
      squares += off * off;
    }
    const double epsilon = static_cast<double>(config_.norm_epsilon);
    const double inverse = 1.0 / std::sqrt(squares / static_cast<double>(width) + epsilon);
    kept.inverse[static_cast<std::size_t>(row)] = static_cast<float>(inverse);
    for (std::int64_t j = 0; j < width; ++j) {
      const auto at = static_cast<std::size_t>(row * width + j);
      const float n = static_cast<float>((static_cast<double>(from[j]) - mean) * inverse);
      kept.normed[at] = n;
      kept.out[at] = n * gain[static_cast<std::size_t>(j)] + bias[static_cast<std::size_t>(j)];
    }
  });
}

// With g = dy * gain and n the normed row: dx = (g - mean(g) - n mean(g n)) / deviation.
void train_network::normalize_back(const norm_kept& kept, const norm& with, const rows& dy,
                                   rows& dx, bool add) {
  const rows& gain = weights_[with.gain].value;
  const auto width = static_cast<std::int64_t>(gain.size());
  dx.resize(dy.size());
  crew_.each(batch_, [&](std::int64_t row) {
    const float* const d = dy.data() + row * width;
    const float* const n = kept.normed.data() + row * width;
    double sum = 0;
    double along = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const double g =
          static_cast<double>(d[j]) * static_cast<double>(gain[static_cast<std::size_t>(j)]);
      sum += g;
      along += g * static_cast<double>(n[j]);
    }
    const auto mean = static_cast<float>(sum / static_cast<double>(width));
    const auto mean_along = static_cast<float>(along / static_cast<double>(width));
    const float inverse = kept.inverse[static_cast<std::size_t>(row)];
    float* const to = dx.data() + row * width;
    for (std::int64_t j = 0; j < width; ++j) {
      const float g = d[j] * gain[static_cast<std::size_t>(j)];
      const float value = (g - mean - n[j] * mean_along) * inverse;
      to[j] = add ? to[j] + value : value;
    }
  });
  bias_back(dy, with.bias);
  rows scaled(dy.size());
  in_pieces(crew_, dy.size(), [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; i += 8) {
      store(load(dy, i) * load(kept.normed, i), scaled, i);
    }
  });
  bias_back(scaled, with.gain);
}

}  // namespace reprise::denoise
