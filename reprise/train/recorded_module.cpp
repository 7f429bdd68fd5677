#include "reprise/train/recorded_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/grad/scoped.hpp"

namespace reprise {

namespace {

std::shared_ptr<graphed> op_of(const nn::sequence& module, byte_budget& budget,
                               const graphed_options& options) {
  return std::make_shared<graphed>(erase(std::make_shared<const nn::sequence>(module)), budget,
                                   options);
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

// Its part says what is to be said.
constexpr graphed_options unrecorded{.record = false, .tells = false};

// What was bound to one module's x, bound to another's.
operand bound_to(const input<float>& x, operand from) {
  from.bound.of = x.of();
  from.bound.slot = x.slot();
  return from;
}

}  // namespace

recorded_module::recorded_module(nn::sequence module, byte_budget& budget,
                                 const part_options& options)
    : module_{std::move(module)},
      inference_{module_.in_inference()},
      budget_{budget},
      options_{options},
      id_{next_id()},
      eager_{op_of(module_, budget, unrecorded)},
      inferring_{inference_.size() == 0 ? nullptr : op_of(inference_, budget, unrecorded)} {}

void recorded_module::open() {
  recording_ = op_of(module_, budget_, {.conflict = hold{}, .returned = options_.returned});
  for (const auto& one : observers_) recording_->observe(one);
}

std::shared_ptr<graphed> recorded_module::let_go() {
  std::shared_ptr<graphed> held = std::exchange(recording_, nullptr);
  const bool had = std::exchange(has_recorded_, false);
  pending_.reset();
  certified_.clear();
  if (had) return held;
  if (held != nullptr) dropped(*held);
  return nullptr;
}

void recorded_module::dropped(const graphed& gone) {
  gone_ += gone.counts();
}

std::string recorded_module::drifted(device_ref on) {
  now_.clear();
  certify(module_, on, now_);
  if (!has_recorded_) {
    std::swap(certified_, now_);
    return {};
  }
  if (REPRISE_MUTANT(drift_is_not_looked_at)) return {};
  std::string text = drift(certified_, now_);
  if (text.empty() && is_observed()) text = "somebody observes its marks";
  return text;
}

part_call recorded_module::forward(site at, const operand& x, bool records) {
  const precision_scope in{options_.in};
  const std::shared_ptr<graphed>& op = records && recording_ != nullptr ? recording_ : eager_;
  // Ahead of the forward: whoever keeps a gradient over it keeps memory of its own.
  if (op == recording_) op->move_live_gradients(at);
  const forward_result made = op->forward(at, {x});
  if (op == recording_) {
    if (made.how == ran::captured) has_recorded_ = true;
    if (made.how != ran::eager) pending_ = made.ticket.call();
  }
  return {made[module_.y], made.ticket, op, id_};
}

bool recorded_module::has_gradients() const {
  return std::ranges::any_of(module_.describe().uses(), [](const declared_use& use) {
    return use.trained != nullptr && use.trained->has_grad;
  });
}

tensor<float> recorded_module::backward(site at, const part_call& call, const tensor<float>& dy,
                                        bool wants_x) {
  if (call.of != id_ || call.by == nullptr) {
    throw usage_error{fmt::format(
        "module '{}': the backward is of no forward of it; give the call that its own forward "
        "returned",
        name())};
  }
  const precision_scope in{options_.in};
  const bool adds = has_gradients();
  const wanted what = wants_x ? wanted::only(module_.x) : wanted::parameters_only();
  const grad_result got = run_backward(at, call, {gradient_of(module_.y, dy)}, what);
  if (adds && got.how == ran::replayed) ++replays_inside_windows_;
  return wants_x ? got[module_.x] : tensor<float>{};
}

grad_result recorded_module::run_backward(site at, const part_call& call, operands cotangents,
                                          const wanted& what) {
  if (call.by == eager_ || call.by == recording_) {
    return call.by->backward(at, call.ticket, cotangents, what);
  }
  // What was recorded is let go: it replays no more.
  const suspended eagerly;
  const grad_counts before = call.by->counts();
  grad_result got = call.by->backward(at, call.ticket, cotangents, what);
  grad_counts after = call.by->counts();
  after -= before;
  gone_ += after;
  return got;
}

tensor<float> recorded_module::infer(site at, const operand& x) {
  if (inferring_ == nullptr) {
    throw usage_error{
        fmt::format("module '{}': there is no layer that inference runs; add one", name())};
  }
  const precision_scope in{options_.in};
  return inferring_->infer(at, {bound_to(inference_.x, x)})[inference_.y];
}

void recorded_module::forget_pending() {
  const std::shared_ptr<forward_call> call = pending_.lock();
  if (call == nullptr || recording_ == nullptr) return;
  if (!REPRISE_MUTANT(holds_outlive_their_batch)) recording_->forget(forward_ticket{call});
  pending_.reset();
}

void recorded_module::observe(const std::shared_ptr<mark_observer>& observer) {
  observers_.push_back(observer);
  for (const auto& op : {eager_, inferring_, recording_}) {
    if (op != nullptr) op->observe(observer);
  }
}

void recorded_module::stop_observing() {
  observers_.clear();
  for (const auto& op : {eager_, inferring_, recording_}) {
    if (op != nullptr) op->stop_observing();
  }
}

grad_counts recorded_module::counts() const {
  grad_counts all = gone_;
  for (const auto& op : {eager_, inferring_, recording_}) {
    if (op != nullptr) all += op->counts();
  }
  return all;
}

}  // namespace reprise
