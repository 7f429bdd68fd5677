// Training: gradients are those of the loss, and no bit depends on how many threads there are.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "workloads/train/denoiser/network.hpp"

namespace reprise {
namespace {

using denoise::crew;
using denoise::denoiser_config;
using denoise::train_batch;
using denoise::train_network;

denoiser_config small() {
  denoiser_config config;
  config.rows = 4;
  config.columns = 8;
  config.class_names = {"a", "b"};
  config.width = 32;
  config.inner_width = 48;
  config.condition_width = 16;
  config.time_width = 16;
  config.blocks = 2;
  config.norm_epsilon = 1e-5F;
  return config;
}

train_batch some_batch(std::int64_t size) {
  std::mt19937 draw{3};
  const auto number = [&] { return static_cast<float>(draw() >> 8) * 0x1p-23F - 1.0F; };
  train_batch batch;
  batch.size = size;
  for (std::int64_t i = 0; i < size * 32; ++i) {
    batch.noisy.push_back(number());
    batch.clean.push_back(number());
  }
  for (std::int64_t i = 0; i < size; ++i) {
    batch.times.push_back(std::abs(number()));
    batch.weights.push_back(1 + std::abs(number()));
    batch.labels.push_back(static_cast<std::int32_t>(i % 3));
  }
  return batch;
}

TEST(a_product, is_that_of_any_shape_and_of_a_transpose) {
  crew with{2};
  std::mt19937 draw{5};
  for (const std::int64_t m : {1, 5, 6, 7, 29}) {
    for (const std::int64_t k : {1, 3, 50}) {
      const std::int64_t n = 32;
      std::vector<float> a(static_cast<std::size_t>(m * k));
      std::vector<float> b(static_cast<std::size_t>(k * n));
      for (float& each : a) each = static_cast<float>(draw() % 64) - 32;
      for (float& each : b) each = static_cast<float>(draw() % 64) - 32;
      std::vector<float> turned(a.size());
      denoise::transpose(with, m, k, a.data(), turned.data());
      std::vector<float> c(static_cast<std::size_t>(m * n), 1.0F);
      std::vector<float> again(c.size());
      denoise::product(with, m, n, k, {a.data(), k, 1}, b.data(), c.data(), true);
      denoise::product(with, m, n, k, {turned.data(), 1, m}, b.data(), again.data(), false);
      for (std::int64_t i = 0; i < m * n; ++i) {
        float sum = 0;  // small whole numbers: exact in any order
        for (std::int64_t l = 0; l < k; ++l) {
          sum += a[static_cast<std::size_t>(i / n * k + l)] *
                 b[static_cast<std::size_t>(l * n + i % n)];
        }
        ASSERT_EQ(c[static_cast<std::size_t>(i)], sum + 1);
        ASSERT_EQ(again[static_cast<std::size_t>(i)], sum);
      }
    }
  }
}

// Along its own gradient a weight changes the loss by the gradient's length, to first order.
TEST(training, gradients_are_those_of_the_loss) {
  crew with{1};
  const train_batch batch = some_batch(9);
  train_network network{small(), with, 1};
  // A few steps away from where it begins, so that no gradient is small by construction.
  for (int i = 0; i < 5; ++i) {
    network.loss_and_gradients(batch);
    network.update({.rate = 1e-2F});
  }
  network.loss_and_gradients(batch);
  for (std::size_t which = 0; which < network.weights().size(); ++which) {
    const denoise::trained& weight = network.weights()[which];
    const std::vector<float> gradient = weight.gradient;
    double length = 0;
    for (const float g : gradient) length += static_cast<double>(g) * static_cast<double>(g);
    length = std::sqrt(length);
    ASSERT_GT(length, 0) << weight.name;
    const double step = 1e-2;
    const auto loss_at = [&](double by) {
      train_network moved = network;
      moved.shift(which, gradient, static_cast<float>(by / length));
      return static_cast<double>(moved.loss_and_gradients(batch));
    };
    const double slope = (loss_at(step) - loss_at(-step)) / (2 * step);
    EXPECT_NEAR(slope, length, 0.02 * length + 2e-4) << weight.name;
  }
}

TEST(training, makes_the_loss_smaller) {
  crew with{1};
  const train_batch batch = some_batch(16);
  train_network network{small(), with, 2};
  const float before = network.loss_and_gradients(batch);
  for (int i = 0; i < 100; ++i) {
    network.update({.rate = 3e-3F});
    network.loss_and_gradients(batch);
  }
  EXPECT_LT(network.loss_and_gradients(batch), before / 2);
}

TEST(training, has_the_same_bits_on_any_number_of_threads) {
  const train_batch batch = some_batch(23);
  const auto trained_on = [&](int threads) {
    crew with{threads};
    train_network network{small(), with, 4};
    for (int i = 0; i < 5; ++i) {
      network.loss_and_gradients(batch);
      network.update({.rate = 1e-3F});
    }
    std::vector<std::vector<float>> all;
    for (const denoise::trained& weight : network.weights()) all.push_back(weight.average);
    return all;
  };
  const auto one = trained_on(1);
  for (const int threads : {2, 3, 5}) EXPECT_EQ(trained_on(threads), one) << threads;
}

}  // namespace
}  // namespace reprise
