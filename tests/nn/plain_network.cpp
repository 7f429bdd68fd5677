#include "tests/nn/plain_network.hpp"

#include <algorithm>
#include <utility>

#include "reprise/kernel/launch.hpp"
#include "reprise/ops/batch_norm.hpp"
#include "reprise/ops/batch_norm_grad.hpp"
#include "reprise/ops/binary_cross_entropy.hpp"
#include "reprise/ops/dropout.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/layer_norm_grad.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/narrowing.hpp"
#include "reprise/ops/optimizers.hpp"
#include "reprise/ops/silu.hpp"
#include "reprise/ops/softmax_cross_entropy.hpp"
#include "reprise/ops/squared_error.hpp"

namespace reprise::test {

namespace {

plain_rows rows_like(plain_desk& at, const plain_rows& x, std::int64_t width) {
  return {at.take<float>(static_cast<std::size_t>(x.m * width)), x.m, width};
}

// What is asked of `p`'s gradient now; later backwards add.
view<const std::int32_t> rule_of(plain_desk& at, plain_parameter& p) {
  return at.rule(std::exchange(p.has_grad, true));
}

class linear_layer : public plain_layer {
 public:
  linear_layer(plain_parameter& weight, plain_parameter* bias) : weight_{weight}, bias_{bias} {}

  plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) override {
    const std::int64_t k = x.width;
    const std::int64_t n = static_cast<std::int64_t>(weight_.value->size()) / k;
    const plain_rows y = rows_like(at, x, n);
    const read<float> bias{bias_ == nullptr ? view<const float>{} : bias_->value->all()};
    kept.x = x;
    if (at.rounds_to_bf16) {
      kept.rounded_x = rounded(at, x.all());
      kept.rounded_weight = rounded(at, weight_.value->all());
      launch(at, linear<bf16>, read<bf16>{kept.rounded_x->all()},
             read<bf16>{kept.rounded_weight->all()}, bias, write<float>{y.all()}, n, k,
             at.products);
    } else {
      launch(at, linear<float>, read<float>{x.all()}, read<float>{weight_.value->all()}, bias,
             write<float>{y.all()}, n, k, at.products);
    }
    return y;
  }

  plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) override {
    const plain_rows dx = rows_like(at, dy, kept.x.width);
    if (kept.rounded_x) {
      const auto narrow_dy = rounded(at, dy.all());
      form<bf16>(at, dy.width, kept.x.width, narrow_dy->all(), kept.rounded_x->all(),
                 kept.rounded_weight->all(), dx);
    } else {
      form<float>(at, dy.width, kept.x.width, dy.all(), kept.x.all(), weight_.value->all(), dx);
    }
    if (bias_ != nullptr) {
      launch(at, column_sum, read<float>{dy.all()}, inout<float>{bias_->grad->all()},
             read<std::int32_t>{rule_of(at, *bias_)}, dy.width);
    }
    return dx;
  }

 private:
  static std::shared_ptr<buffer<bf16>> rounded(plain_desk& at, view<float> from) {
    auto to = at.take<bf16>(from.size());
    launch(at, narrow_to_bf16, read<float>{from}, write<bf16>{to->all()});
    return to;
  }

  template <class A>
  void form(plain_desk& at, std::int64_t n, std::int64_t k, view<const A> dy, view<const A> x,
            view<const A> weight, const plain_rows& dx) {
    launch(at, linear_input_grad<A>, read<A>{dy}, read<A>{weight}, write<float>{dx.all()}, n, k,
           at.products);
    launch(at, linear_weight_grad<A>, read<A>{dy}, read<A>{x}, inout<float>{weight_.grad->all()},
           read<std::int32_t>{rule_of(at, weight_)}, n, k, at.products);
  }

  plain_parameter& weight_;
  plain_parameter* bias_;
};

class layer_norm_layer : public plain_layer {
 public:
  layer_norm_layer(plain_parameter& gain, plain_parameter& bias, float eps)
      : gain_{gain}, bias_{bias}, eps_{eps} {}

  plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) override {
    const plain_rows y = rows_like(at, x, x.width);
    kept.x = x;
    kept.stats = rows_like(at, x, 2);
    launch(at, layer_norm_saving, read<float>{x.all()}, read<float>{gain_.value->all()},
           read<float>{bias_.value->all()}, write<float>{y.all()}, write<float>{kept.stats.all()},
           x.width, eps_);
    return y;
  }

  plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) override {
    const plain_rows dx = rows_like(at, dy, dy.width);
    const read<float> x{kept.x.all()};
    const read<float> stats{kept.stats.all()};
    launch(at, layer_norm_input_grad, x, read<float>{gain_.value->all()}, stats,
           read<float>{dy.all()}, write<float>{dx.all()}, dy.width);
    launch(at, layer_norm_weight_grad, x, stats, read<float>{dy.all()},
           inout<float>{gain_.grad->all()}, inout<float>{bias_.grad->all()},
           read<std::int32_t>{rule_of(at, gain_)}, read<std::int32_t>{rule_of(at, bias_)},
           dy.width);
    return dx;
  }

 private:
  plain_parameter& gain_;  // both have a gradient, or none
  plain_parameter& bias_;
  float eps_;
};

class batch_norm_layer : public plain_layer {
 public:
  batch_norm_layer(plain_parameter& gain, plain_parameter& bias,
                   std::shared_ptr<buffer<float>> running, float eps, float momentum)
      : gain_{gain}, bias_{bias}, running_{std::move(running)}, eps_{eps}, momentum_{momentum} {}

  plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) override {
    const plain_rows y = rows_like(at, x, x.width);
    kept.x = x;
    kept.stats = {at.take<float>(static_cast<std::size_t>(2 * x.width)), 2, x.width};
    launch(at, batch_norm, read<float>{x.all()}, read<float>{gain_.value->all()},
           read<float>{bias_.value->all()}, inout<float>{running_->all()}, write<float>{y.all()},
           write<float>{kept.stats.all()}, x.width, eps_, momentum_);
    return y;
  }

  plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) override {
    const plain_rows dx = rows_like(at, dy, dy.width);
    const read<float> x{kept.x.all()};
    const read<float> stats{kept.stats.all()};
    const auto sums = at.take<float>(static_cast<std::size_t>(2 * dy.width));
    launch(at, batch_norm_weight_grad, x, stats, read<float>{dy.all()}, write<float>{sums->all()},
           inout<float>{gain_.grad->all()}, inout<float>{bias_.grad->all()},
           read<std::int32_t>{rule_of(at, gain_)}, read<std::int32_t>{rule_of(at, bias_)},
           dy.width);
    launch(at, batch_norm_input_grad, x, read<float>{gain_.value->all()}, stats,
           read<float>{sums->all()}, read<float>{dy.all()}, write<float>{dx.all()}, dy.width);
    return dx;
  }

 private:
  plain_parameter& gain_;
  plain_parameter& bias_;
  std::shared_ptr<buffer<float>> running_;
  float eps_;
  float momentum_;
};

class gelu_layer : public plain_layer {
 public:
  plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) override {
    kept.x = x;
    const plain_rows y = rows_like(at, x, x.width);
    launch(at, gelu, read<float>{x.all()}, write<float>{y.all()});
    return y;
  }
  plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) override {
    const plain_rows dx = rows_like(at, dy, dy.width);
    launch(at, gelu_grad, read<float>{kept.x.all()}, read<float>{dy.all()}, write<float>{dx.all()});
    return dx;
  }
};

class silu_layer : public plain_layer {
 public:
  plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) override {
    kept.x = x;
    const plain_rows y = rows_like(at, x, x.width);
    launch(at, silu, read<float>{x.all()}, write<float>{y.all()});
    return y;
  }
  plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) override {
    const plain_rows dx = rows_like(at, dy, dy.width);
    launch(at, silu_grad, read<float>{kept.x.all()}, read<float>{dy.all()}, write<float>{dx.all()});
    return dx;
  }
};

class dropout_layer : public plain_layer {
 public:
  dropout_layer(float rate, philox_counter& counter) : rate_{rate}, counter_{counter} {}

  plain_rows forward(plain_desk& at, const plain_rows& x, plain_kept& kept) override {
    if (rate_ == 0) return x;
    kept.words = at.words(counter_);
    counter_.advance(uniform_draws(x.all().size()));
    return drop(at, x, kept);
  }
  plain_rows backward(plain_desk& at, const plain_rows& dy, const plain_kept& kept) override {
    return rate_ == 0 ? dy : drop(at, dy, kept);
  }

 private:
  plain_rows drop(plain_desk& at, const plain_rows& from, const plain_kept& kept) const {
    const plain_rows to = rows_like(at, from, from.width);
    launch(at, dropout, read<float>{from.all()}, read<std::uint64_t>{kept.words->all()},
           write<float>{to.all()}, 0, rate_);
    return to;
  }

  float rate_;
  philox_counter& counter_;
};

}  // namespace

plain_desk::plain_desk(pool& memory, stream_ref stream)
    : memory_{&memory}, stream_{stream}, rules_{memory, 2, stream} {
  const std::array<std::int32_t, 2> words{static_cast<std::int32_t>(gradient_rule::write),
                                          static_cast<std::int32_t>(gradient_rule::add)};
  copy(stream_, read<std::int32_t>{view<const std::int32_t>{words.data(), words.size()}},
       write<std::int32_t>{rules_.all()});
}

workspace_ref plain_desk::workspace() const {
  const auto take = [](void* owner, std::size_t bytes) -> std::span<std::byte> {
    const auto* const desk = static_cast<const plain_desk*>(owner);
    if (desk->workspace_.bytes() < bytes) {
      desk->workspace_ = block{*desk->memory_, bytes, desk->stream_};
    }
    return {desk->workspace_.data(), bytes};
  };
  return {take, const_cast<plain_desk*>(this)};
}

std::shared_ptr<buffer<float>> plain_desk::upload(const std::vector<float>& values) const {
  auto made = take<float>(values.size());
  copy(stream_, read<float>{view<const float>{values.data(), values.size()}},
       write<float>{made->all()});
  return made;
}

view<const std::int32_t> plain_desk::rule(bool adds) const {
  return rules_.all().subview(adds ? 1 : 0, 1);
}

std::shared_ptr<buffer<std::uint64_t>> plain_desk::words(const philox_counter& counter) const {
  const std::array<std::uint64_t, 2> words = counter.words();
  auto made = take<std::uint64_t>(words.size());
  copy(stream_, read<std::uint64_t>{view<const std::uint64_t>{words.data(), words.size()}},
       write<std::uint64_t>{made->all()});
  return made;
}

std::unique_ptr<plain_layer> plain_linear(plain_parameter& weight, plain_parameter* bias) {
  return std::make_unique<linear_layer>(weight, bias);
}
std::unique_ptr<plain_layer> plain_layer_norm(plain_parameter& gain, plain_parameter& bias,
                                              float eps) {
  return std::make_unique<layer_norm_layer>(gain, bias, eps);
}
std::unique_ptr<plain_layer> plain_batch_norm(plain_parameter& gain, plain_parameter& bias,
                                              std::shared_ptr<buffer<float>> running, float eps,
                                              float momentum) {
  return std::make_unique<batch_norm_layer>(gain, bias, std::move(running), eps, momentum);
}
std::unique_ptr<plain_layer> plain_gelu() {
  return std::make_unique<gelu_layer>();
}
std::unique_ptr<plain_layer> plain_silu() {
  return std::make_unique<silu_layer>();
}
std::unique_ptr<plain_layer> plain_dropout(float rate, philox_counter& counter) {
  return std::make_unique<dropout_layer>(rate, counter);
}

plain_call plain_network::forward(plain_desk& at, const plain_rows& x) {
  plain_call call{x, std::vector<plain_kept>(layers_.size())};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    call.y = layers_[i]->forward(at, call.y, call.kept[i]);
  }
  return call;
}

plain_rows plain_network::backward(plain_desk& at, const plain_call& call, const plain_rows& dy) {
  plain_rows gradient = dy;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    gradient = layers_[i]->backward(at, gradient, call.kept[i]);
  }
  return gradient;
}

plain_loss plain_cross_entropy(plain_desk& at, const plain_rows& logits,
                               const std::vector<std::int32_t>& targets, float dloss) {
  const auto there = at.take<std::int32_t>(targets.size());
  copy(at, read<std::int32_t>{view<const std::int32_t>{targets.data(), targets.size()}},
       write<std::int32_t>{there->all()});
  const auto counted = at.take<float>(1);
  plain_loss made{at.take<float>(1), rows_like(at, logits, logits.width)};
  launch(at, softmax_cross_entropy, read<float>{logits.all()}, read<std::int32_t>{there->all()},
         write<float>{made.loss->all()}, write<float>{counted->all()}, logits.width);
  launch(at, softmax_cross_entropy_grad, read<float>{logits.all()},
         read<std::int32_t>{there->all()}, read<float>{counted->all()},
         read<float>{at.upload({dloss})->all()}, write<float>{made.dx.all()}, logits.width);
  return made;
}

plain_loss plain_binary_cross_entropy(plain_desk& at, const plain_rows& logits,
                                      const plain_rows& targets, float dloss) {
  plain_loss made{at.take<float>(1), rows_like(at, logits, logits.width)};
  launch(at, binary_cross_entropy, read<float>{logits.all()}, read<float>{targets.all()},
         write<float>{made.loss->all()});
  launch(at, binary_cross_entropy_grad, read<float>{logits.all()}, read<float>{targets.all()},
         read<float>{at.upload({dloss})->all()}, write<float>{made.dx.all()});
  return made;
}

plain_loss plain_squared_error(plain_desk& at, const plain_rows& x, const plain_rows& target,
                               float dloss) {
  plain_loss made{at.take<float>(1), rows_like(at, x, x.width)};
  launch(at, squared_error, read<float>{x.all()}, read<float>{target.all()},
         write<float>{made.loss->all()});
  launch(at, squared_error_grad, read<float>{x.all()}, read<float>{target.all()},
         read<float>{at.upload({dloss})->all()}, write<float>{made.dx.all()});
  return made;
}

plain_adamw::plain_adamw(plain_desk& at, const std::vector<plain_parameter*>& all, float rate,
                         float decay)
    : words_{rate, 0.9F, 0.999F, 1e-8F, decay, 0, 0} {
  for (plain_parameter* const p : all) {
    const std::vector<float> zeros(p->value->size(), 0.0F);
    all_.push_back({p, at.upload(zeros), at.upload(zeros)});
  }
}

void plain_adamw::update(plain_desk& at) {
  for (std::size_t i = 0; i < left_.size(); ++i) {
    left_[i] *= static_cast<double>(words_[1 + i]);
    words_[5 + i] = static_cast<float>(1 - left_[i]);
  }
  const auto words = at.upload({words_.begin(), words_.end()});
  for (const moments& one : all_) {
    if (!one.of->has_grad) continue;
    launch(at, adamw, read<float>{words->all()}, read<float>{one.of->grad->all()},
           inout<float>{one.first->all()}, inout<float>{one.second->all()},
           inout<float>{one.of->value->all()});
  }
}

}  // namespace reprise::test
