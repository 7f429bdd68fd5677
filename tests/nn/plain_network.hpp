// Training without grad, replay or recordings, to hold those to its bits: the same kernels,
// launched one after another on memory of their own. It shares no code with reprise/nn.
//
// Gradients follow the eager rule: the first backward since they were dropped writes, later ones
// add. One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/base/dtype.hpp"
#include "reprise/base/gradient_rule.hpp"
#include "reprise/base/matrix_precision.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/philox_counter.hpp"

namespace reprise::test {

// A stream that lends workspace, and words that kernels read.
class plain_desk {
 public:
  plain_desk(pool& memory, stream_ref stream);

  operator stream_ref() const { return stream_; }
  workspace_ref workspace() const;

  template <class T>
  std::shared_ptr<buffer<T>> take(std::size_t count) const {
    return std::make_shared<buffer<T>>(*memory_, count, stream_);
  }
  std::shared_ptr<buffer<float>> upload(const std::vector<float>& values) const;
  // A word of this rule.
  view<const std::int32_t> rule(bool adds) const;
  std::shared_ptr<buffer<std::uint64_t>> words(const philox_counter& counter) const;

  matrix_precision products = matrix_precision::full;
  bool rounds_to_bf16 = false;

 private:
  pool* memory_;
  stream_ref stream_;
  buffer<std::int32_t> rules_;
  mutable block workspace_;
};

struct plain_rows {
  std::shared_ptr<buffer<float>> held;
  std::int64_t m = 0;
  std::int64_t width = 0;

  view<float> all() const { return held->all(); }
};

struct plain_parameter {
  std::shared_ptr<buffer<float>> value;
  std::shared_ptr<buffer<float>> grad;
  bool has_grad = false;
};

// What one forward of a layer leaves for its backward.
struct plain_kept {
  plain_rows x;
  plain_rows stats;
  std::shared_ptr<buffer<bf16>> rounded_x;
  std::shared_ptr<buffer<bf16>> rounded_weight;
  std::shared_ptr<buffer<std::uint64_t>> words;
};

class plain_layer {
 public:
  virtual ~plain_layer() = default;
  virtual plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) = 0;
  virtual plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) = 0;
};

// `bias` may be null.
std::unique_ptr<plain_layer> plain_linear(plain_parameter& weight, plain_parameter* bias);
std::unique_ptr<plain_layer> plain_layer_norm(plain_parameter& gain, plain_parameter& bias,
                                              float eps);
// `running` [2, width], means and variances, moves in each forward.
std::unique_ptr<plain_layer> plain_batch_norm(plain_parameter& gain, plain_parameter& bias,
                                              std::shared_ptr<buffer<float>> running, float eps,
                                              float momentum);
std::unique_ptr<plain_layer> plain_gelu();
std::unique_ptr<plain_layer> plain_silu();
std::unique_ptr<plain_layer> plain_dropout(float rate, philox_counter& counter);

struct plain_call {
  plain_rows y;
  std::vector<plain_kept> kept;  // by layer
};

class plain_network {
 public:
  void add(std::unique_ptr<plain_layer> layer) { layers_.push_back(std::move(layer)); }
  plain_call forward(plain_desk& at, const plain_rows& x);
  // The gradient of x.
  plain_rows backward(plain_desk& at, const plain_call& call, const plain_rows& dy);

 private:
  std::vector<std::unique_ptr<plain_layer>> layers_;
};

// A loss and the gradient of what it is formed of, for this gradient of the loss.
struct plain_loss {
  std::shared_ptr<buffer<float>> loss;
  plain_rows dx;
};
plain_loss plain_cross_entropy(plain_desk& at, const plain_rows& logits,
                               const std::vector<std::int32_t>& targets, float dloss);
plain_loss plain_binary_cross_entropy(plain_desk& at, const plain_rows& logits,
                                      const plain_rows& targets, float dloss);
plain_loss plain_squared_error(plain_desk& at, const plain_rows& x, const plain_rows& target,
                               float dloss);

// One kernel for each parameter.
class plain_adamw {
 public:
  plain_adamw(plain_desk& at, const std::vector<plain_parameter*>& all, float rate, float decay);
  void update(plain_desk& at);

  struct moments {
    plain_parameter* of;
    std::shared_ptr<buffer<float>> first;
    std::shared_ptr<buffer<float>> second;
  };
  const std::vector<moments>& all() const { return all_; }

 private:
  std::vector<moments> all_;
  std::array<float, 7> words_;
  std::array<double, 2> left_{1, 1};
};

}  // namespace reprise::test
