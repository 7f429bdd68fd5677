// What the tests of this room stand on: a desk with a device, a stream, a pool and a budget; the
// tiny ops of scenarios/grad_ops.hpp and one more; and `subject`, which is an op of any kind with
// what it refers to, and with the plain evaluator of the same op beside it (grad_plain.hpp). All
// bits are compared with that, never with a run of the runtime itself.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/grad/checkpoint.hpp"
#include "reprise/grad/graphed_op.hpp"
#include "reprise/grad/lane.hpp"
#include "scenarios/grad_ops.hpp"
#include "scenarios/grad_plain.hpp"
#include "tests/grad/twofold.hpp"
#include "tests/replay/cases.hpp"

namespace reprise::test {

namespace on_host = scenarios::on_host;
using scenarios::row;

// Those of this build and those of the tiny ops, with their checked bodies.
kernel_registry grad_test_kernels();

// Numbers whose products and sums are rounded, others for each seed.
floats numbers(int seed, std::size_t count);

testing::AssertionResult same_bits(const floats& seen, const floats& expected);

// The counts that are not 0, as "forward_capture 1, forward_replay 2, forward hold 1".
std::string told(const grad_counts& counts);
inline std::string told(const graphed& op) {
  return told(op.counts());
}

struct grad_desk {
  explicit grad_desk(const std::string& spec);
  grad_desk(const std::string& spec, const wrapping& wrap);

  // [values / row, row], on the device.
  tensor<float> made(const floats& values);
  floats values_of(view<const float> from) const { return read_back<float>(work, from); }
  std::int32_t value_of(view<const std::int32_t> one) const {
    return read_back<std::int32_t>(work, one)[0];
  }

  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened;
  stream work{opened};
  pool memory{opened, "test"};
  byte_budget budget{byte_budget::unlimited};
};

class grad_case : public testing::TestWithParam<std::string> {
 protected:
  grad_case() {
    set_log_sink([this](std::string_view line) { log.emplace_back(line); });
  }
  ~grad_case() override { set_log_sink({}); }

  device_ref dev() const { return desk.opened; }
  stream_ref s() const { return desk.work; }
  // Lines that hold both parts.
  int lines_with(std::string_view part, std::string_view other = {}) const;

  std::vector<std::string> log;
  grad_desk desk{GetParam()};
};

// A weight of `row` elements that is trained, and lies on the device.
struct trained_weight {
  trained_weight(grad_desk& at, const floats& values);
  void set(grad_desk& at, const floats& values);

  buffer<float> value;
  buffer<float> gradient;
  parameter at;
};

enum class op_kind : std::uint8_t {
  scaled,
  noisy,
  counted,
  rewinding,
  joined,
  remembering,
  twofold
};
inline constexpr std::array all_kinds{op_kind::scaled,    op_kind::noisy,  op_kind::counted,
                                      op_kind::rewinding, op_kind::joined, op_kind::remembering,
                                      op_kind::twofold};
std::string name_of(op_kind kind);

// An op, and what it must give.
class subject {
 public:
  // One forward: what it was given, under what, and what it made.
  struct call {
    forward_result result;
    floats x;
    floats b;  // of `joined`
    tensor<float> x_at;
    tensor<float> b_at;
    on_host::draw from;
    precision in_force;
  };

  subject(grad_desk& at, op_kind kind, const graphed_options& options = {},
          const std::string& work = {}, const std::string& name = {});

  // Of numbers(values); on the desk's stream, or another one.
  call forward(int values, int rows = 2) { return forward(at_.work, values, rows); }
  call forward(site at, int values, int rows = 2);
  // The same where no backward can come.
  call infer(int values, int rows = 2);
  // With cotangents of numbers(values), of all outputs.
  grad_result backward(const call& of, int values, const wanted& what = {}) {
    return backward(at_.work, of, values, what);
  }
  grad_result backward(site at, const call& of, int values, const wanted& what = {});
  // Forward and backward, all bits as they must be.
  void step(int values, int rows = 2);

  // The output of the call, as it is now.
  void expect_output(const call& of) const;
  // The gradients of inputs that were wanted.
  void expect_gradients(const call& of, const grad_result& got, int values,
                        const wanted& what = {}) const;
  // Parameter gradients, declared state and generator: those of all calls so far.
  void expect_state() const;
  // After a forward of these values that threw: its state and its random numbers count once or not
  // at all, and the evaluator goes on from there.
  void expect_once_or_not_at_all(int values, int rows = 2);
  // After a backward that threw: each parameter has got its gradient, or not.
  void expect_each_once_or_not_at_all(const call& of, int values) const;
  // As an optimizer clears gradients, one that keeps them as zeros, and one that uses them.
  void drop_gradients();
  void zero_gradients();
  void descend(float rate);

  graphed& op() const { return *op_; }
  std::string counts() const { return told(*op_); }
  operands given(call& of) const;

  // Of the last call of the op alone.
  std::uint64_t calls(seam_call kind_of_call) const {
    return made_[static_cast<std::size_t>(kind_of_call)];
  }
  // All of them, as text.
  std::string calls() const;

  op_kind kind;
  bool leaves_b_out = false;
  // Just ahead of each call of the op, and behind it, though it throws.
  std::function<void()> at_call;
  std::function<void()> after_call;
  std::vector<input<float>> inputs;
  std::vector<output<float>> outputs;
  std::vector<trained_weight> weights;
  std::vector<floats> weight_values;
  philox_counter counter{7};

 private:
  template <class Op>
  void hold(Op made, const graphed_options& options);
  floats output_of(const call& of, std::size_t slot) const;
  std::vector<floats> gradients_of(const call& of, int values, const precision& in_force) const;
  std::vector<floats> deliveries_of(const call& of, int values, const precision& in_force) const;
  call given_values(int values, int rows);
  void moved_on(const call& of);
  floats cotangent(const call& of, int values, std::size_t slot) const;
  template <class Call>
  auto counted_call(stream_ref on, const Call& does);

  grad_desk& at_;
  std::array<std::uint64_t, seam_calls> made_{};
  buffer<std::int32_t> steps_;
  buffer<float> running_;
  std::shared_ptr<graphed> op_;
  mutable std::vector<operand> given_;
  // What all calls so far have made.
  std::int32_t expected_steps_ = 0;
  floats expected_running_ = floats(row, 0.0F);
  std::uint64_t expected_next_ = 0;
  std::vector<std::optional<floats>> expected_gradients_;
};

#define EXPECT_BITS(seen, expected) EXPECT_TRUE(::reprise::test::same_bits(seen, expected))

}  // namespace reprise::test
