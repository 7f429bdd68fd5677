// What the tests of this room stand on: a desk with a device that counts its calls and can fail
// one; a small model, a trunk with two heads and a loss of two terms, made of parts; and the same
// model run plainly, each layer an op of its own that never records, with parameters of its own.
// All bits are compared with that one.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/device/faulty.hpp"
#include "reprise/nn/network.hpp"
#include "reprise/nn/parameters.hpp"
#include "reprise/train/graphed_heads.hpp"
#include "reprise/train/graphed_loss.hpp"
#include "reprise/train/graphed_network.hpp"
#include "reprise/train/training_run.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {

// On [-1, 1), the same for the same seed.
floats numbers(std::size_t count, unsigned seed);
testing::AssertionResult same_bits(const floats& seen, const floats& expected);

struct training_desk {
  // With all kernels of this build, or those that `has` says yes to.
  explicit training_desk(const std::string& spec,
                         const std::function<bool(const cell_row&)>& has = {});

  tensor<float> made(const floats& values, const dims& shape);
  floats host(const tensor<float>& from) { return host(from.get()); }
  floats host(view<const float> from) { return read_back<float>(work, from); }

  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  std::shared_ptr<fault_plan> faults = std::make_shared<fault_plan>();
  device opened;
  stream work{opened};
  pool memory{opened, "test"};
  byte_budget budget{byte_budget::unlimited};
};

namespace model_of {

inline constexpr std::int64_t pixels = 11;
inline constexpr std::int64_t hidden = 8;
inline constexpr std::int64_t features = 6;
inline constexpr std::int64_t classes = 4;
inline constexpr std::int64_t mask = 5;
inline constexpr float mask_weight = 0.3F;

}  // namespace model_of

// One micro-batch: what it is made of, and which groups have targets.
struct micro_batch {
  unsigned seed = 0;
  std::int64_t rows = 6;
  std::array<bool, 2> has_target{true, true};
  float scale = 0.5F;

  floats x() const;
  std::vector<std::int32_t> labels() const;
  floats masks() const;
  bool has_loss() const { return has_target[0] || has_target[1]; }
};

// What a micro-batch has made.
struct made_by {
  std::array<floats, 2> predictions;
  floats loss;
  std::array<floats, 2> terms;
  std::array<floats, 2> gradients;  // of predictions
  std::array<floats, 2> dfeatures;  // of what each head read
  floats dx;
};
void expect_same(const made_by& seen, const made_by& expected);

// Parameters and a generator of their own, the same for the same seed.
struct weights {
  explicit weights(training_desk& on, unsigned seed = 3);

  floats gradients();  // of those that have one, in order
  std::vector<bool> have_gradients() const;
  // As an optimizer does: weight -= 0.1 * gradient, in place, by the host.
  void descend();
  nn::sequence trunk();
  nn::sequence class_head();
  nn::sequence mask_head();

  training_desk& on;
  nn::parameter_set set;
  philox_counter counter{9};
};
void expect_same_weights(weights& seen, weights& expected);

// The parts of one training step.
struct graphed_model {
  explicit graphed_model(training_desk& on, const part_options& options = {.on = true},
                         bool dx_wanted = true);

  // One after the other, so that a test may stop between them, or begin again behind a failure.
  struct under_way {
    micro_batch of;
    tensor<float> x;
    tensor<float> scale;
    std::optional<part_call> trunk;
    std::array<std::optional<part_call>, 2> heads;
    std::optional<graphed_loss::result> loss;
    std::array<tensor<float>, 2> dfeatures;
    tensor<float> dx;
    bool is_done = false;  // its backward has run
  };
  under_way begin(const micro_batch& of);
  void forward(under_way& now);
  void compute_loss(under_way& now);
  made_by backward(under_way& now);
  made_by run(const micro_batch& of);
  // Predictions as in inference.
  std::array<floats, 2> infer(const micro_batch& of);

  std::vector<run_part> parts() { return {&trunk, &heads, &loss}; }

  training_desk& on;
  weights own{on};
  bool wants_x;
  graphed_network trunk;
  graphed_heads heads;
  graphed_loss loss;
};

// The same, one op for each layer, and nothing recorded.
class plain_model {
 public:
  explicit plain_model(training_desk& on, const precision& in = {});

  struct pending {
    micro_batch of;
    nn::network_call trunk;
    std::array<nn::network_call, 2> heads;
  };
  pending forward(const micro_batch& of);
  made_by backward(const pending& call);
  made_by run(const micro_batch& of) { return backward(forward(of)); }
  std::array<floats, 2> infer(const micro_batch& of);

  training_desk& on;
  weights own{on};

 private:
  precision in_;
  nn::network trunk_;
  std::array<nn::network, 2> heads_;
  graphed_op<nn::softmax_cross_entropy> class_loss_;
  graphed_op<nn::squared_error> mask_loss_;
};

class training_case : public testing::TestWithParam<std::string> {
 protected:
  training_case() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
  }
  ~training_case() override { set_log_sink({}); }

  device_ref dev() const { return desk.opened; }
  stream_ref s() const { return desk.work; }
  int lines_with(std::string_view part) const;

  std::vector<std::string> log;
  training_desk desk{GetParam()};
};

// The counts of calls that are not 0: "forward_capture 1, forward_replay 2".
std::string told(const part_counts& counts);

class noted_marks final : public mark_observer {
 public:
  void on_mark(step_scope&, point where, const tensor_ref&) override {
    seen.push_back(std::string{where.kind} + " " + std::to_string(where.layer));
  }
  std::vector<std::string> seen;
};

#define EXPECT_BITS(seen, expected) EXPECT_TRUE(::reprise::test::same_bits(seen, expected))

}  // namespace reprise::test
