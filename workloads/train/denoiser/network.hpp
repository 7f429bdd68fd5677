// The denoiser for training: its weights with their gradients, forward and backward over a batch,
// and AdamW. train_denoiser drives it; denoiser.hpp has the formulas of the forward pass.
//
// Everything is f32 in a fixed order of operations (products.hpp), e^x is the ops' own, and
// nothing else comes from libm but what IEEE 754 rounds correctly: the bits of a training run are
// those of its seed. One thread at a time calls it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/denoise/denoiser_config.hpp"
#include "workloads/train/denoiser/products.hpp"

namespace reprise::denoise {

// A matrix [in, out], the transpose of what a file holds; or a vector, with in = 1.
struct trained {
  std::string name;
  std::int64_t in = 1;
  std::int64_t out = 0;
  bool vector = false;
  std::vector<float> value, gradient, mean, square;
  std::vector<float> average;  // of the values, over training: what is kept in the end
};

struct train_batch {
  std::int64_t size = 0;
  std::vector<float> noisy;          // [size, pixels]
  std::vector<float> clean;          // [size, pixels]
  std::vector<float> times;          // [size]
  std::vector<float> weights;        // [size], of each image in the loss
  std::vector<std::int32_t> labels;  // [size]; null_class() for "no class"
};

struct adam_options {
  float rate = 0;
  float first_decay = 0.9F;
  float second_decay = 0.99F;
  float weight_decay = 0.01F;  // of matrices
  float epsilon = 1e-8F;
  float average_decay = 0.999F;
};

class train_network {
 public:
  train_network(denoiser_config config, crew& with, std::uint64_t seed);

  // Mean over the batch of weight * mean over pixels of (prediction - clean)^2, and its gradients.
  float loss_and_gradients(const train_batch& batch);
  // One step of AdamW (Loshchilov and Hutter, 2019), and of the running average.
  void update(const adam_options& options);
  // One weight moved along a direction: to see what the loss does then.
  void shift(std::size_t weight, const std::vector<float>& along, float by);

  const std::vector<trained>& weights() const { return weights_; }
  const denoiser_config& config() const { return config_; }

 private:
  using rows = std::vector<float>;

  // Indices into weights_.
  struct linear {
    std::size_t matrix, bias;
  };
  struct norm {
    std::size_t gain, bias;
  };
  struct block {
    norm before;
    linear up;
    std::size_t condition;
    linear down;
  };
  // What backward needs of a forward pass through a norm.
  struct norm_kept {
    rows normed;   // before gain and bias
    rows inverse;  // 1 / deviation, by row
    rows out;
  };

  std::size_t matrix(const std::string& name, std::int64_t in, std::int64_t out, float scale);
  std::size_t vector(const std::string& name, std::int64_t size, float value);
  linear layer(const std::string& name, std::int64_t in, std::int64_t out, float scale);
  norm norm_of(const std::string& name);

  void forward(const train_batch& batch);
  float loss(const train_batch& batch);
  void backward(const train_batch& batch);

  void multiply(const rows& x, std::size_t matrix, rows& y, bool add);
  void add_bias(rows& y, std::size_t bias);
  void multiply_back(const rows& x, const rows& dy, std::size_t matrix);
  void spread_back(const rows& dy, std::size_t matrix, rows& dx, bool add);
  void bias_back(const rows& dy, std::size_t bias);
  void activate(const rows& x, rows& y);
  void activate_back(const rows& x, rows& dy);
  void normalize(const rows& x, const norm& with, norm_kept& kept);
  void normalize_back(const norm_kept& kept, const norm& with, const rows& dy, rows& dx, bool add);

  denoiser_config config_;
  crew& crew_;
  std::uint64_t seed_;
  std::vector<trained> weights_;
  std::int64_t updates_ = 0;
  float first_left_ = 1;  // decay to the power of updates
  float second_left_ = 1;

  linear input_{}, time_in_{}, time_out_{}, output_{};
  std::size_t classes_ = 0;
  std::vector<block> blocks_;
  norm last_{};

  // Activations and gradients of the batch at hand.
  std::int64_t batch_ = 0;
  rows time_features_, time_inner_, time_active_, condition_, condition_active_;
  rows residual_, prediction_;
  std::vector<norm_kept> normed_;  // of the blocks, then the last
  std::vector<rows> inner_, inner_active_;
  rows transposed_;
};

}  // namespace reprise::denoise
