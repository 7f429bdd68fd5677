#include "bench/sdm/called_op.hpp"

#include <memory>
#include <utility>

#include "bench/sdm/digest.hpp"
#include "reprise/base/clock.hpp"

namespace reprise::bench {

namespace {

graphed_options options_of(bool is_replayed) {
  return {.conflict = hold{}, .returned = gradients::moved, .record = is_replayed};
}

// Empty where there is none: a state, or the gradient of an index.
std::uint64_t digest_held(stream_ref stream, const std::shared_ptr<held_tensor>& held,
                          std::uint64_t so_far) {
  return held == nullptr ? so_far : digest_of(stream, held->now(), so_far);
}

template <class Call>
double us_of(stream_ref stream, Call&& call) {
  stream.synchronize();
  const double began = now_us();
  call();
  stream.synchronize();
  return now_us() - began;
}

}  // namespace

called_op::called_op(stream_ref stream, const op_to_call& what, byte_budget& budget,
                     bool is_replayed)
    : stream_{stream},
      what_{what},
      op_{what.op, budget, options_of(is_replayed)},
      is_replayed_{is_replayed} {}

forward_result called_op::forward() {
  for (parameter* const one : what_.trained) one->has_grad = false;
  return op_.forward(stream_, operands{what_.given});
}

grad_result called_op::backward(const forward_ticket& ticket) {
  ++pairs_;
  return op_.backward(stream_, ticket, {what_.cotangent});
}

void called_op::run() {
  const forward_result made = forward();
  backward(made.ticket);
}

std::uint64_t called_op::run_and_look() {
  std::uint64_t digest = 0;
  const forward_result made = forward();
  for (const auto& one : made.outputs) digest = digest_held(stream_, one, digest);
  for (const auto& one : made.states) {
    if (one != nullptr) digest = digest_held(stream_, one->read(stream_), digest);
  }
  const grad_result formed = backward(made.ticket);
  for (const auto& one : formed.gradients) digest = digest_held(stream_, one, digest);
  for (const parameter* const one : what_.trained) digest = digest_of(stream_, one->grad, digest);
  return digest;
}

void called_op::time(pass_times& into) {
  {
    forward_result made;
    grad_result formed;
    into.forward.push_back(us_of(stream_, [&] { made = forward(); }));
    into.backward.push_back(us_of(stream_, [&] { formed = backward(made.ticket); }));
  }
  into.both.push_back(time_both());
}

double called_op::time_both() {
  forward_result made;
  grad_result formed;
  return us_of(stream_, [&] {
    made = forward();
    formed = backward(made.ticket);
  });
}

op_counts called_op::counts() const {
  op_counts counts{what_.what + (is_replayed_ ? ", replayed" : ", eager"), op_.counts(), {}, true};
  if (is_replayed_) {
    counts.planned.forward_capture = counts.planned.backward_capture = 1;
    counts.planned.forward_replay = counts.planned.backward_replay = pairs_ - 1;
  } else {
    constexpr auto off = static_cast<std::size_t>(eager_cause::suspended);
    counts.planned.eager_forward[off] = counts.planned.eager_backward[off] = pairs_;
  }
  return counts;
}

}  // namespace reprise::bench
