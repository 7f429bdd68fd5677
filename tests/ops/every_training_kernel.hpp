// The calls of every_kernel.hpp that are of training's own kernels: norms and losses with their
// gradients, activations, and what updates parameters.
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/ops/add.hpp"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/batch_norm_grad.hpp"
#include "reprise/ops/binary_cross_entropy.hpp"
#include "reprise/ops/dropout.hpp"
#include "reprise/ops/embedding_grad.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/gradient_norm.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_gelu.hpp"
#include "reprise/ops/layer_norm_grad.hpp"
#include "reprise/ops/moving_average.hpp"
#include "reprise/ops/multiply_by.hpp"
#include "reprise/ops/optimizers.hpp"
#include "reprise/ops/silu.hpp"
#include "reprise/ops/softmax_cross_entropy.hpp"
#include "reprise/ops/squared_error.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {

template <class T>
view<T> all(std::vector<T>& values) {
  return {values.data(), values.size()};
}
template <class T>
view<const T> all(const std::vector<T>& values) {
  return {values.data(), values.size()};
}

using tokens = std::vector<std::int32_t>;

// Gradients are added to what is there, so that a body both reads and writes them.
template <class Runner>
void run_training_norms(Runner& with) {
  for (const std::size_t width : {1U, 33U, 256U}) {
    const auto wide = static_cast<std::int64_t>(width);
    const auto x = random_values<float>(41 * width, 22);
    const auto gain = random_values<float>(width, 23);
    const auto bias = random_values<float>(width, 24);
    const auto dy = random_values<float>(41 * width, 25);
    std::vector<float> y(41 * width, 9.0F);
    std::vector<float> stats(2 * 41, 9.0F);
    with.run(layer_norm_saving, read<float>{all(x)}, read<float>{all(gain)}, read<float>{all(bias)},
             write<float>{all(y)}, write<float>{all(stats)}, wide, 1e-5F);
    std::vector<float> dx(41 * width, 9.0F);
    const std::vector<float> kept = stats;
    with.run(layer_norm_input_grad, read<float>{all(x)}, read<float>{all(gain)},
             read<float>{all(kept)}, read<float>{all(dy)}, write<float>{all(dx)}, wide);
    auto dgain = random_values<float>(width, 26);
    auto dbias = random_values<float>(width, 27);
    const std::vector<std::int32_t> gain_rule{static_cast<std::int32_t>(gradient_rule::add)};
    const std::vector<std::int32_t> bias_rule = gain_rule;
    with.run(layer_norm_weight_grad, read<float>{all(x)}, read<float>{all(kept)},
             read<float>{all(dy)}, inout<float>{all(dgain)}, inout<float>{all(dbias)},
             read<std::int32_t>{all(gain_rule)}, read<std::int32_t>{all(bias_rule)}, wide);
    y.assign(y.size(), 9.0F);
    stats.assign(stats.size(), 9.0F);
    dx.assign(dx.size(), 9.0F);
    with.run(layer_norm_gelu_saving, read<float>{all(x)}, read<float>{all(gain)},
             read<float>{all(bias)}, write<float>{all(y)}, write<float>{all(stats)}, wide, 1e-5F);
    with.run(layer_norm_gelu_input_grad, read<float>{all(x)}, read<float>{all(gain)},
             read<float>{all(bias)}, read<float>{all(kept)}, read<float>{all(dy)},
             write<float>{all(dx)}, wide);
    with.run(layer_norm_gelu_weight_grad, read<float>{all(x)}, read<float>{all(gain)},
             read<float>{all(bias)}, read<float>{all(kept)}, read<float>{all(dy)},
             inout<float>{all(dgain)}, inout<float>{all(dbias)}, read<std::int32_t>{all(gain_rule)},
             read<std::int32_t>{all(bias_rule)}, wide);
  }
}

// Gradients are added to what is there here, too.
template <class Runner>
void run_batch_norms(Runner& with) {
  for (const std::size_t width : {1U, 33U, 70U}) {
    const auto wide = static_cast<std::int64_t>(width);
    const auto x = random_values<float>(41 * width, 37);
    const auto gain = random_values<float>(width, 38);
    const auto bias = random_values<float>(width, 39);
    const auto dy = random_values<float>(41 * width, 40);
    std::vector<float> running(2 * width, 0.5F);
    std::vector<float> y(41 * width, 9.0F);
    std::vector<float> stats(2 * width, 9.0F);
    with.run(batch_norm, read<float>{all(x)}, read<float>{all(gain)}, read<float>{all(bias)},
             inout<float>{all(running)}, write<float>{all(y)}, write<float>{all(stats)}, wide,
             1e-5F, 0.1F);
    const std::vector<float> frozen(2 * width, 0.25F);
    y.assign(y.size(), 9.0F);
    with.run(frozen_batch_norm, read<float>{all(x)}, read<float>{all(gain)}, read<float>{all(bias)},
             read<float>{all(frozen)}, write<float>{all(y)}, wide, 1e-5F);
    std::vector<float> dx(41 * width, 9.0F);
    with.run(frozen_batch_norm_grad, read<float>{all(gain)}, read<float>{all(frozen)},
             read<float>{all(dy)}, write<float>{all(dx)}, wide, 1e-5F);
    std::vector<float> sums(2 * width, 9.0F);
    auto dgain = random_values<float>(width, 41);
    auto dbias = random_values<float>(width, 42);
    const std::vector<std::int32_t> gain_rule{static_cast<std::int32_t>(gradient_rule::add)};
    const std::vector<std::int32_t> bias_rule = gain_rule;
    const std::vector<float> kept = stats;
    with.run(batch_norm_weight_grad, read<float>{all(x)}, read<float>{all(kept)},
             read<float>{all(dy)}, write<float>{all(sums)}, inout<float>{all(dgain)},
             inout<float>{all(dbias)}, read<std::int32_t>{all(gain_rule)},
             read<std::int32_t>{all(bias_rule)}, wide);
    const std::vector<float> found = sums;
    dx.assign(dx.size(), 9.0F);
    with.run(batch_norm_input_grad, read<float>{all(x)}, read<float>{all(gain)},
             read<float>{all(kept)}, read<float>{all(found)}, read<float>{all(dy)},
             write<float>{all(dx)}, wide);
  }
}

// Token 1 has more rows than one part of a sum; two are no tokens.
template <class Runner>
void run_embedding_grads(Runner& with) {
  const std::vector<std::int32_t> add{static_cast<std::int32_t>(gradient_rule::add)};
  for (const std::size_t width : {1U, 33U, 264U}) {
    tokens chosen(70, 1);
    chosen[0] = 2;
    chosen[30] = -1;
    chosen[31] = 3;
    const auto dy = random_values<float>(chosen.size() * width, 35);
    auto table = random_values<float>(3 * width, 36);
    with.run(embedding_grad, read<std::int32_t>{all(chosen)}, read<float>{all(dy)},
             inout<float>{all(table)}, read<std::int32_t>{all(add)},
             static_cast<std::int64_t>(width));
  }
}

template <class Runner>
void run_losses(Runner& with) {
  const std::vector<float> dloss{0.5F};
  const std::vector<float> counted{4.0F};
  for (const std::size_t classes : {1U, 33U, 256U}) {
    const auto logits = random_values<float>(5 * classes, 28);
    const tokens targets{0, -1, static_cast<std::int32_t>(classes) - 1, 0, 0};
    std::vector<float> loss{-1.0F};
    std::vector<float> rows{-1.0F};
    with.run(softmax_cross_entropy, read<float>{all(logits)}, read<std::int32_t>{all(targets)},
             write<float>{all(loss)}, write<float>{all(rows)}, static_cast<std::int64_t>(classes));
    std::vector<float> dlogits(logits.size(), 9.0F);
    with.run(softmax_cross_entropy_grad, read<float>{all(logits)}, read<std::int32_t>{all(targets)},
             read<float>{all(counted)}, read<float>{all(dloss)}, write<float>{all(dlogits)},
             static_cast<std::int64_t>(classes));
  }
  for (const std::size_t count : {1U, 5000U}) {
    const auto x = random_values<float>(count, 29);
    const auto target = random_values<float>(count, 30);
    std::vector<float> loss{-1.0F};
    std::vector<float> dx(count, 9.0F);
    with.run(squared_error, read<float>{all(x)}, read<float>{all(target)}, write<float>{all(loss)});
    with.run(squared_error_grad, read<float>{all(x)}, read<float>{all(target)},
             read<float>{all(dloss)}, write<float>{all(dx)});
    const auto shares = random_values<float>(count, 43, 1.0F);
    with.run(binary_cross_entropy, read<float>{all(x)}, read<float>{all(shares)},
             write<float>{all(loss)});
    with.run(binary_cross_entropy_grad, read<float>{all(x)}, read<float>{all(shares)},
             read<float>{all(dloss)}, write<float>{all(dx)});
    with.run(binary_cross_entropy_target_grad, read<float>{all(x)}, read<float>{all(dloss)},
             write<float>{all(dx)});
  }
}

template <class Runner>
void run_training_elements(Runner& with) {
  const std::vector<std::uint64_t> base{42, 100};
  const std::vector<float> sgd_words{0.1F, 0.9F, 0.01F};
  const std::vector<float> adamw_words{0.1F, 0.9F, 0.99F, 1e-8F, 0.01F, 0.1F, 0.01F};
  for (const std::size_t count : {1U, 31U, 1000U}) {
    const auto x = random_values<float>(count, 31);
    const auto dy = random_values<float>(count, 32);
    std::vector<float> out(count, 9.0F);
    with.run(gelu_grad, read<float>{all(x)}, read<float>{all(dy)}, write<float>{all(out)});
    with.run(silu, read<float>{all(x)}, write<float>{all(out)});
    with.run(silu_grad, read<float>{all(x)}, read<float>{all(dy)}, write<float>{all(out)});
    with.run(add, read<float>{all(x)}, read<float>{all(dy)}, write<float>{all(out)});
    with.run(multiply_by, read<float>{all(x)}, write<float>{all(out)}, 0.3F);
    with.run(dropout, read<float>{all(x)}, read<std::uint64_t>{all(base)}, write<float>{all(out)},
             std::uint64_t{7}, 0.25F);
    auto weight = random_values<float>(count, 33);
    auto m = random_values<float>(count, 34);
    std::vector<float> v(count, 0.5F);
    with.run(sgd, read<float>{all(sgd_words)}, read<float>{all(dy)}, inout<float>{all(m)},
             inout<float>{all(weight)});
    with.run(adamw, read<float>{all(adamw_words)}, read<float>{all(dy)}, inout<float>{all(m)},
             inout<float>{all(v)}, inout<float>{all(weight)});
  }
}

template <class Runner>
void run_gradient_norms(Runner& with) {
  const std::vector<float> words{4.0F, 0.5F};
  const std::vector<float> facts{2.0F, 1.0F, 0.25F};
  const std::vector<float> decay{0.9F};
  for (const std::size_t count : {1U, 5000U}) {
    auto grad = random_values<float>(count, 44);
    std::vector<double> squares{0.5};
    with.run(gradient_squares, read<float>{all(words)}, read<float>{all(grad)},
             inout<double>{all(squares)}, gradient_rule::add);
    std::vector<float> found(3, 9.0F);
    const std::vector<double> sum = squares;
    with.run(gradient_norm, read<float>{all(words)}, read<double>{all(sum)},
             write<float>{all(found)});
    with.run(scale_gradients, read<float>{all(words)}, read<float>{all(facts)},
             inout<float>{all(grad)});
    const auto value = random_values<float>(count, 45);
    with.run(moving_average, read<float>{all(decay)}, read<float>{all(value)},
             inout<float>{all(grad)});
  }
}

template <class Runner>
void run_every_training_kernel(Runner& with) {
  run_training_norms(with);
  run_batch_norms(with);
  run_losses(with);
  run_embedding_grads(with);
  run_training_elements(with);
  run_gradient_norms(with);
}

}  // namespace reprise::test
