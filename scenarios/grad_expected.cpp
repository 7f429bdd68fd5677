#include "scenarios/grad_expected.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "scenarios/grad_ops.hpp"

namespace reprise::scenarios {

namespace {

// Odd multiples of 1/997, so that products and sums round.
floats values(std::uint64_t of, int rows) {
  floats made;
  for (std::int64_t i = 0; i != rows * row; ++i) {
    std::uint64_t mixed = of * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(i + 1);
    mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9U;
    mixed ^= mixed >> 32;
    made.push_back(static_cast<float>(2 * static_cast<int>(mixed % 900) - 899) / 997.0F);
  }
  return made;
}

std::uint64_t mixed_of(const grad_schedule& of, int what, int id, int slot, int times) {
  std::uint64_t mixed = of.seed;
  for (const int part : {what, id, slot, times}) {
    mixed = mixed * 0x100000001b3U + static_cast<std::uint64_t>(part) + 1;
  }
  return mixed;
}

}  // namespace

floats input_values(const grad_schedule& of, int id, int slot, int spoiled, int rows) {
  return values(mixed_of(of, 0, id, slot, spoiled), rows);
}

floats cotangent_values(const grad_schedule& of, int id, int slot, int times, int rows) {
  return values(mixed_of(of, 1, id, slot, times), rows);
}

floats first_weight(const grad_schedule& of, int op) {
  return values(mixed_of(of, 2, op, 0, 0), 1);
}

philox_counter first_counter(const grad_schedule& of) {
  return philox_counter{of.seed, 1};
}

expected_values::expected_values(const grad_schedule& of)
    : of_{of}, weight_versions_(of.ops.size(), 0), counter_{first_counter(of)} {
  for (std::size_t i = 0; i < of.ops.size(); ++i) {
    ops_.push_back({first_weight(of, static_cast<int>(i)), {}, 0, floats(row, 0.0F)});
  }
}

bool expected_values::makes_sense(const scheduled& call) const {
  const auto found = calls_.find(call.id);
  const bool is_there = found != calls_.end();
  const bool was_forward = is_there && found->second.made_by.what == act::forward;
  switch (call.what) {
    case act::forward:
    case act::infer: return !is_there;
    case act::again: return was_forward;
    case act::backward:
    case act::drop: return was_forward && found->second.has_ticket;
    case act::spoil: return was_forward && !found->second.made_by.on_host;
    case act::recall: return was_forward && kind(found->second) == op_kind::remembering;
    case act::update: return !op(call.op).gradient.empty();
    case act::reset:
    case act::span: return true;
    case act::recompute: return begun_.contains(call.id) && !recomputes(call.id);
    case act::end: return !open_.empty();
  }
  return false;
}

op_kind expected_values::kind(const call_values& call) const {
  return of_.ops[static_cast<std::size_t>(call.made_by.op)].kind;
}

bool expected_values::leaves_state() const {
  return std::ranges::any_of(open_, [](const open_span& one) { return one.put_back.has_value(); });
}

// A checkpoint is not recomputed inside of its own recompute.
bool expected_values::recomputes(int label) const {
  return std::ranges::any_of(
      open_, [&](const open_span& one) { return one.put_back && one.label == label; });
}

expected_values::outputs expected_values::run(call_values& call) {
  const scheduled& by = call.made_by;
  const auto i = static_cast<std::size_t>(by.op);
  call.spoiled_at_run = call.spoiled;
  call.x = input_values(of_, by.id, 0, call.spoiled, by.rows);
  call.weight_version = weight_versions_[i];
  op_values& op = ops_[i];
  switch (kind(call)) {
    case op_kind::scaled:
      call.weight = op.weight;
      return {on_host::scaled(call.x, op.weight, magnification(by.in_force)), {}};
    case op_kind::noisy:
      call.drawn = {counter_.seed(), counter_.next()};
      counter_.advance(on_host::draws_of_noisy(call.x.size()));
      return {on_host::noisy(call.x, call.drawn), {}};
    case op_kind::counted:
      if (!leaves_state()) on_host::count_step(call.x, op.steps, op.running);
      return {on_host::counted(call.x), {}};
    case op_kind::rewinding: return {on_host::rewinding(call.x), {}};
    case op_kind::joined:
      call.b = by.alone ? floats{} : input_values(of_, by.id, 1, 0, by.rows);
      return {on_host::joined(call.x, call.b), {}};
    case op_kind::remembering: {
      auto [y, memory] = on_host::remembering(call.x);
      return {std::move(y), std::move(memory)};
    }
  }
  return {};
}

expected_values::outputs expected_values::forward(const scheduled& call) {
  call_values& made = calls_[call.id];
  made.made_by = call;
  made.has_ticket = call.what == act::forward;
  return run(made);
}

expected_values::outputs expected_values::again(int id) {
  call_values& call = calls_.at(id);
  call.has_ticket = true;
  return run(call);
}

expected_values::results expected_values::backward(const scheduled& asked) {
  call_values& call = calls_.at(asked.id);
  results made;
  made.times = call.times++;
  const scheduled& by = call.made_by;
  const auto i = static_cast<std::size_t>(by.op);
  const bool trains = kind(call) == op_kind::scaled;
  made.is_stale =
      call.spoiled != call.spoiled_at_run || (trains && call.weight_version != weight_versions_[i]);
  if (made.is_stale) return made;
  const floats dy = cotangent_values(of_, by.id, 0, made.times, by.rows);
  const floats dmemory =
      asked.by_memory ? cotangent_values(of_, by.id, 1, made.times, by.rows) : floats{};
  const auto form = [&](const floats& gradient) {
    made.gradients.push_back(asked.inputs ? gradient : floats{});
  };
  switch (kind(call)) {
    case op_kind::scaled: {
      // Casts as in the forward, products as they are now.
      const float factor = magnification({asked.in_force.products, by.in_force.casts});
      form(on_host::scaled_dx(dy, call.weight, factor));
      if (!asked.weights) break;
      const floats dw = on_host::scaled_dw(dy, call.x, row, factor);
      floats& sum = ops_[i].gradient;
      if (sum.empty()) {
        sum = dw;
      } else {
        for (std::size_t j = 0; j < dw.size(); ++j) sum[j] = sum[j] + dw[j];
      }
      break;
    }
    case op_kind::noisy: form(on_host::noisy(dy, call.drawn)); break;
    case op_kind::counted: form(on_host::counted_dx(dy, call.x)); break;
    case op_kind::rewinding: form(on_host::rewinding_dx(dy, call.x)); break;
    case op_kind::joined:
      form(on_host::joined_da(dy, call.b));
      if (!call.b.empty()) form(on_host::joined_db(dy, call.x));
      break;
    case op_kind::remembering: form(on_host::remembering_dx(dy, dmemory, call.x)); break;
  }
  return made;
}

void expected_values::update(int op) {
  const auto i = static_cast<std::size_t>(op);
  on_host::descend(ops_[i].weight, ops_[i].gradient, 0.5F);
  ops_[i].gradient.clear();
  ++weight_versions_[i];
}

void expected_values::begin(const scheduled& span) {
  if (span.what == act::span) {
    begun_.insert_or_assign(span.id, counter_);
    open_.push_back({span.id, std::nullopt});
    return;
  }
  open_.push_back({span.id, counter_});
  counter_ = begun_.at(span.id);
}

void expected_values::end() {
  if (open_.back().put_back) counter_ = *open_.back().put_back;
  open_.pop_back();
}

}  // namespace reprise::scenarios
