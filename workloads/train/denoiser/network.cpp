#include "workloads/train/denoiser/network.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reprise/ops/math.hpp"
#include "reprise/ops/philox.hpp"
#include "reprise/ops/random.hpp"
#include "reprise/ops/timestep_embedding.hpp"

namespace reprise::denoise {

train_network::train_network(denoiser_config config, crew& with, std::uint64_t seed)
    : config_{std::move(config)}, crew_{with}, seed_{seed} {
  const denoiser_config& c = config_;
  input_ = layer("input", c.pixels(), c.width, 1);
  time_in_ = layer("time.in", c.time_width, c.condition_width, 1);
  time_out_ = layer("time.out", c.condition_width, c.condition_width, 1);
  classes_ = matrix("class.weight", c.classes() + 1, c.condition_width, 1);
  for (std::int64_t i = 0; i < c.blocks; ++i) {
    const std::string at = "blocks." + std::to_string(i) + ".";
    block& b = blocks_.emplace_back();
    b.before = norm_of(at + "norm");
    b.up = layer(at + "up", c.width, c.inner_width, 1);
    b.condition = matrix(at + "condition.weight", c.condition_width, c.inner_width, 1);
    b.down = layer(at + "down", c.inner_width, c.width, 0.25F);
  }
  last_ = norm_of("norm");
  output_ = layer("output", c.width, c.pixels(), 0.25F);
}

// Drawn with variance scale^2 / in. A table of classes is no matrix product: its rows have variance
// 1/4 each.
std::size_t train_network::matrix(const std::string& name, std::int64_t in, std::int64_t out,
                                  float scale) {
  const auto size = static_cast<std::size_t>(in * out);
  trained w{name, in, out, false, rows(size), rows(size), rows(size), rows(size), {}};
  const float deviation = name == "class.weight" ? 0.5F : scale / std::sqrt(static_cast<float>(in));
  const float factor = deviation / ops::centred_sum_deviation;
  for (std::size_t i = 0; i < size; ++i) {
    const ops::philox_words words = ops::philox(seed_, i, weights_.size());
    w.value[i] = ops::centred_sum(words.at[0], words.at[1]) * factor;
  }
  w.average = w.value;
  weights_.push_back(std::move(w));
  return weights_.size() - 1;
}

std::size_t train_network::vector(const std::string& name, std::int64_t size, float value) {
  const auto n = static_cast<std::size_t>(size);
  weights_.push_back(
      {name, 1, size, true, rows(n, value), rows(n), rows(n), rows(n), rows(n, value)});
  return weights_.size() - 1;
}

train_network::linear train_network::layer(const std::string& name, std::int64_t in,
                                           std::int64_t out, float scale) {
  const std::size_t weight = matrix(name + ".weight", in, out, scale);
  return {weight, vector(name + ".bias", out, 0)};
}

train_network::norm train_network::norm_of(const std::string& name) {
  const std::size_t gain = vector(name + ".weight", config_.width, 1);
  return {gain, vector(name + ".bias", config_.width, 0)};
}

float train_network::loss_and_gradients(const train_batch& batch) {
  batch_ = batch.size;
  forward(batch);
  const float value = loss(batch);
  backward(batch);
  return value;
}

void train_network::forward(const train_batch& batch) {
  const denoiser_config& c = config_;
  time_features_.resize(static_cast<std::size_t>(batch_ * c.time_width));
  crew_.each(batch_, [&](std::int64_t row) {
    for (std::int64_t j = 0; j < c.time_width / 2; ++j) {
      const std::int64_t at = row * c.time_width + j;
      const float angle =
          batch.times[static_cast<std::size_t>(row)] * ops::timestep_frequency(j, c.time_width / 2);
      math::sincos(angle, time_features_[static_cast<std::size_t>(at + c.time_width / 2)],
                   time_features_[static_cast<std::size_t>(at)]);
    }
  });
  multiply(time_features_, time_in_.matrix, time_inner_, false);
  add_bias(time_inner_, time_in_.bias);
  activate(time_inner_, time_active_);
  condition_.resize(static_cast<std::size_t>(batch_ * c.condition_width));
  for (std::int64_t row = 0; row < batch_; ++row) {
    const std::int64_t label = batch.labels[static_cast<std::size_t>(row)];
    std::copy_n(weights_[classes_].value.data() + label * c.condition_width, c.condition_width,
                condition_.data() + row * c.condition_width);
  }
  multiply(time_active_, time_out_.matrix, condition_, true);
  add_bias(condition_, time_out_.bias);
  activate(condition_, condition_active_);

  multiply(batch.noisy, input_.matrix, residual_, false);
  add_bias(residual_, input_.bias);
  normed_.resize(blocks_.size() + 1);
  inner_.resize(blocks_.size());
  inner_active_.resize(blocks_.size());
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    const block& b = blocks_[i];
    normalize(residual_, b.before, normed_[i]);
    multiply(normed_[i].out, b.up.matrix, inner_[i], false);
    multiply(condition_active_, b.condition, inner_[i], true);
    add_bias(inner_[i], b.up.bias);
    activate(inner_[i], inner_active_[i]);
    multiply(inner_active_[i], b.down.matrix, residual_, true);
    add_bias(residual_, b.down.bias);
  }
  normalize(residual_, last_, normed_.back());
  multiply(normed_.back().out, output_.matrix, prediction_, false);
  add_bias(prediction_, output_.bias);
}

// The loss; prediction_ becomes its gradient.
float train_network::loss(const train_batch& batch) {
  const std::int64_t pixels = config_.pixels();
  rows of_row(static_cast<std::size_t>(batch_));
  crew_.each(batch_, [&](std::int64_t row) {
    const float scale =
        batch.weights[static_cast<std::size_t>(row)] / static_cast<float>(pixels * batch_);
    float sum = 0;
    for (std::int64_t i = row * pixels; i < (row + 1) * pixels; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const float off = prediction_[at] - batch.clean[at];
      sum += off * off;
      prediction_[at] = 2 * scale * off;
    }
    of_row[static_cast<std::size_t>(row)] = sum * scale;
  });
  float total = 0;
  for (const float each : of_row) total += each;
  return total;
}

void train_network::backward(const train_batch& batch) {
  const denoiser_config& c = config_;
  rows d_normed, d_residual, d_inner, d_condition, d_time;
  multiply_back(normed_.back().out, prediction_, output_.matrix);
  bias_back(prediction_, output_.bias);
  spread_back(prediction_, output_.matrix, d_normed, false);
  normalize_back(normed_.back(), last_, d_normed, d_residual, false);
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    const block& b = blocks_[i];
    multiply_back(inner_active_[i], d_residual, b.down.matrix);
    bias_back(d_residual, b.down.bias);
    spread_back(d_residual, b.down.matrix, d_inner, false);
    activate_back(inner_[i], d_inner);
    multiply_back(normed_[i].out, d_inner, b.up.matrix);
    multiply_back(condition_active_, d_inner, b.condition);
    bias_back(d_inner, b.up.bias);
    spread_back(d_inner, b.condition, d_condition, i + 1 != blocks_.size());
    spread_back(d_inner, b.up.matrix, d_normed, false);
    normalize_back(normed_[i], b.before, d_normed, d_residual, true);
  }
  multiply_back(batch.noisy, d_residual, input_.matrix);
  bias_back(d_residual, input_.bias);

  activate_back(condition_, d_condition);
  trained& table = weights_[classes_];
  std::ranges::fill(table.gradient, 0.0F);
  for (std::int64_t row = 0; row < batch_; ++row) {
    float* const to =
        table.gradient.data() + batch.labels[static_cast<std::size_t>(row)] * c.condition_width;
    const float* const from = d_condition.data() + row * c.condition_width;
    for (std::int64_t j = 0; j < c.condition_width; ++j) to[j] += from[j];
  }
  multiply_back(time_active_, d_condition, time_out_.matrix);
  bias_back(d_condition, time_out_.bias);
  spread_back(d_condition, time_out_.matrix, d_time, false);
  activate_back(time_inner_, d_time);
  multiply_back(time_features_, d_time, time_in_.matrix);
  bias_back(d_time, time_in_.bias);
}

void train_network::update(const adam_options& o) {
  ++updates_;
  first_left_ *= o.first_decay;
  second_left_ *= o.second_decay;
  const float first_scale = 1 / (1 - first_left_);
  const float second_scale = 1 / (1 - second_left_);
  // The average follows closely at first, when the weights have not settled.
  const auto done = static_cast<float>(updates_);
  const float keep = std::min(o.average_decay, (1 + done) / (10 + done));
  crew_.each(static_cast<std::int64_t>(weights_.size()), [&](std::int64_t which) {
    trained& w = weights_[static_cast<std::size_t>(which)];
    const float shrink = w.vector ? 1.0F : 1 - o.rate * o.weight_decay;
    for (std::size_t i = 0; i < w.value.size(); ++i) {
      const float g = w.gradient[i];
      w.mean[i] = o.first_decay * w.mean[i] + (1 - o.first_decay) * g;
      w.square[i] = o.second_decay * w.square[i] + (1 - o.second_decay) * g * g;
      const float deviation = std::sqrt(w.square[i] * second_scale) + o.epsilon;
      w.value[i] = w.value[i] * shrink - o.rate * (w.mean[i] * first_scale) / deviation;
      w.average[i] = keep * w.average[i] + (1 - keep) * w.value[i];
    }
  });
}

void train_network::shift(std::size_t weight, const std::vector<float>& along, float by) {
  std::vector<float>& value = weights_[weight].value;
  for (std::size_t i = 0; i < value.size(); ++i) value[i] += by * along[i];
}

}  // namespace reprise::denoise
