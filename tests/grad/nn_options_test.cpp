// G6 for the layers and losses of reprise/nn: each shows every option of a call in its counts and
// in what it asks of the device. Their bits are tests/nn's.
#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/binary_cross_entropy.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/embedding.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/nn/silu.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "reprise/nn/squared_error.hpp"
#include "tests/grad/op_rows.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

constexpr std::int64_t width = 8;

// An op of reprise/nn of any kind, with what it refers to.
class layer {
 public:
  layer(grad_desk& at, const std::string& kind, const graphed_options& options) : at_{at} {
    const auto parameters = [&](const nn::parameter_specs& specs) -> nn::parameter_set& {
      return set_.emplace(at.memory, at.work, specs, 5);
    };
    if (kind == "linear") {
      auto& set = parameters(nn::linear_parameters("a", width, width));
      hold(nn::linear{set[0], set[1]}, options);
    } else if (kind == "layer_norm") {
      auto& set =
          parameters({{"gain", {width}, nn::uniform{2}}, {"bias", {width}, nn::uniform{1}}});
      hold(nn::layer_norm{set[0], set[1]}, options);
    } else if (kind == "batch_norm") {
      auto& set = parameters(nn::norm_parameters("a", width));
      hold(nn::batch_norm{set[0], set[1], stats()}, options);
    } else if (kind == "frozen_batch_norm") {
      auto& set = parameters(nn::norm_parameters("a", width));
      hold(nn::frozen_batch_norm{set[0], set[1], stats()}, options);
      trains_ = false;
    } else if (kind == "sequence") {
      auto& set = parameters(nn::linear_parameters("a", width, width));
      nn::sequence made{"sequence"};
      made.add(nn::linear{set[0], set[1]}).add(nn::gelu{});
      hold(std::move(made), options);
    } else if (kind == "gelu") {
      hold(nn::gelu{}, options);
    } else if (kind == "silu") {
      hold(nn::silu{}, options);
    } else if (kind == "dropout") {
      hold(nn::dropout{0.5F, counter_}, options);
    } else if (kind == "softmax_cross_entropy") {
      hold(nn::softmax_cross_entropy{}, options);
    } else if (kind == "binary_cross_entropy") {
      hold(nn::binary_cross_entropy{}, options);
    } else if (kind == "squared_error") {
      hold(nn::squared_error{}, options);
    } else if (kind == "embedding") {
      hold(nn::embedding{parameters({{"table", {3, width}, nn::uniform{1}}})[0]}, options);
    }
  }

  forward_result forward(int rows = 2) {
    const auto count = static_cast<std::size_t>(rows * width);
    const auto tensor_of = [&](std::int64_t elements) {
      tensor<float> made = make_tensor<float>(at_.memory, {rows, elements / rows}, at_.work);
      upload(at_.work, numbers(3, static_cast<std::size_t>(elements)), made.get());
      return made;
    };
    std::vector<operand> given;
    for (const input<float>& one : inputs_) {
      given.emplace_back(one, tensor_of(static_cast<std::int64_t>(count)));
    }
    if (integers_) {
      tensor<std::int32_t> made = make_tensor<std::int32_t>(at_.memory, {rows}, at_.work);
      upload(at_.work, std::vector<std::int32_t>(static_cast<std::size_t>(rows), 1), made.get());
      given.emplace_back(*integers_, made);
    }
    const calls_since before{*at_.calls};
    forward_result done = op_->forward(at_.work, operands{given});
    kernels = before[seam_call::kernel];
    return done;
  }
  grad_result backward(const forward_result& of, const wanted& what = {}) {
    const tensor<float> y = of[*output_];
    tensor<float> dy = make_tensor<float>(at_.memory, y.shape(), at_.work);
    upload(at_.work, numbers(9, y.size()), dy.get());
    const calls_since before{*at_.calls};
    grad_result got = op_->backward(at_.work, of.ticket, {gradient_of(*output_, dy)}, what);
    copies = before[seam_call::copy];
    launches = before[seam_call::launch];
    return got;
  }
  void step(int rows = 2) { (void)backward(forward(rows)); }

  bool has_gradients() const {
    for (std::size_t i = 0; set_ && i < set_->size(); ++i) {
      if ((*set_)[i].has_grad) return true;
    }
    return false;
  }
  bool trains() const { return set_.has_value() && trains_; }
  std::string counts() const { return told(*op_); }
  const std::vector<input<float>>& floats() const { return inputs_; }

  std::uint64_t kernels = 0;  // of the last forward
  std::uint64_t copies = 0;   // of the last backward
  std::uint64_t launches = 0;

 private:
  template <class Op>
  void hold(Op made, const graphed_options& options) {
    const auto held = std::make_shared<graphed_op<Op>>(std::move(made), at_.budget, options);
    if constexpr (std::is_same_v<Op, nn::binary_cross_entropy>) {
      inputs_ = {held->op().logits, held->op().targets};
    } else if constexpr (requires { held->op().logits; }) {
      inputs_ = {held->op().logits};
      integers_ = held->op().targets;
    } else if constexpr (requires { held->op().tokens; }) {
      integers_ = held->op().tokens;
    } else {
      inputs_ = {held->op().x};
    }
    if constexpr (requires { held->op().target; }) inputs_.push_back(held->op().target);
    if constexpr (requires { held->op().loss; }) {
      output_ = held->op().loss;
    } else {
      output_ = held->op().y;
    }
    op_ = held;
  }

  grad_desk& at_;
  nn::running_stats& stats() { return stats_.emplace(at_.memory, width, at_.work); }

  std::optional<nn::parameter_set> set_;
  bool trains_ = true;  // its parameters, where it has some
  std::optional<nn::running_stats> stats_;
  philox_counter counter_{3};
  std::vector<input<float>> inputs_;
  std::optional<input<std::int32_t>> integers_;  // targets, or tokens
  std::optional<output<float>> output_;
  std::shared_ptr<graphed> op_;
};

class layer_options : public grad_case {
 protected:
  template <class Each>
  void for_each_kind(const Each& each) {
    for (const auto& [kind, row] : nn_op_rows()) {
      SCOPED_TRACE(kind);
      each(kind, row);
    }
  }
};

REPRISE_ON_EACH_DEVICE(layer_options);

TEST_P(layer_options, G6_answer_a_conflict_as_they_say) {
  for_each_kind([&](const std::string& kind, const op_row&) {
    const auto counts = [&](const on_conflict& policy) {
      layer of{desk, kind, {.conflict = policy}};
      const forward_result first = of.forward();
      const forward_result second = of.forward();
      (void)of.backward(first);
      (void)of.backward(second);
      return of.counts();
    };
    EXPECT_EQ(counts(hold{}),
              "forward_capture 1, backward_capture 1, forward hold 1, backward hold 1");
    EXPECT_EQ(counts(recompute{}),
              "forward_capture 1, forward_replay 1, backward_capture 1, backward_replay 1, "
              "stale_replay 2");
    EXPECT_EQ(counts(slots{2}), "forward_capture 2, backward_capture 2");
  });
}

TEST_P(layer_options, G6_record_keys_and_return_gradients_as_they_say) {
  for_each_kind([&](const std::string& kind, const op_row&) {
    for (const gradients returned : {gradients::cloned, gradients::moved}) {
      layer of{desk, kind, {.returned = returned, .keys = 2}};
      for (int i = 0; i < 2; ++i) {
        of.step(2);
        of.step(3);
      }
      EXPECT_EQ(of.copies, 0U) << "what is cloned is left by a node";
      EXPECT_EQ(of.launches, 1U);
      EXPECT_EQ(of.counts(),
                "forward_capture 2, forward_replay 2, backward_capture 2, backward_replay 2");
    }
    layer one{desk, kind, {}};
    one.step(2);
    one.step(3);
    EXPECT_EQ(one.counts(), "forward_capture 1, backward_capture 1, forward key 1, backward key 1");
    layer none{desk, kind, {.record = false}};
    const std::uint64_t captures = (*desk.calls)[seam_call::capture];
    none.step();
    EXPECT_EQ(none.counts(), "forward suspended 1, backward suspended 1");
    EXPECT_EQ((*desk.calls)[seam_call::capture], captures);
  });
}

TEST_P(layer_options, G6_form_what_is_wanted) {
  for_each_kind([&](const std::string& kind, const op_row& row) {
    for (const bool record : {true, false}) {
      layer of{desk, kind, {.record = record}};
      wanted inputs_only;
      inputs_only.parameters = false;
      for (int i = 0; i < 2; ++i) {
        const grad_result got = of.backward(of.forward(), inputs_only);
        EXPECT_FALSE(of.has_gradients());
        std::uint64_t formed = 0;
        for (const auto& held : got.gradients) formed += held != nullptr ? 1 : 0;
        EXPECT_EQ(formed, row.gradients);
      }
      for (int i = 0; i < 2; ++i) {
        const grad_result got = of.backward(of.forward(), wanted::parameters_only());
        for (const auto& held : got.gradients) EXPECT_EQ(held, nullptr);
        EXPECT_EQ(of.has_gradients(), of.trains());
      }
      if (of.floats().empty()) continue;
      const input<float>& x = of.floats().front();
      const grad_result one = of.backward(of.forward(), wanted::only(x));
      EXPECT_TRUE(static_cast<bool>(one[x]));
    }
  });
}

TEST_P(layer_options, G6_are_recorded_under_their_precision) {
  for_each_kind([&](const std::string& kind, const op_row& row) {
    layer of{desk, kind, {.keys = 2}};
    of.step();
    layer plain{desk, kind, {.record = false}};
    (void)plain.forward();
    const std::uint64_t kernels = plain.kernels;
    const precision_scope now{{matrix_precision::full, cast_mode::bf16}};
    of.step();
    (void)plain.forward();
    EXPECT_EQ(of.counts(), "forward_capture 2, backward_capture 2");
    EXPECT_EQ(plain.kernels > kernels, row.follows_precision) << "operands are rounded, or not";
  });
}

}  // namespace
}  // namespace reprise::test
