#include "scenarios/grad_player.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/grad/checkpoint.hpp"
#include "reprise/kernel/launch.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/grad_expected.hpp"
#include "scenarios/grad_kernels.hpp"
#include "scenarios/grad_ops.hpp"
#include "scenarios/grad_played.hpp"
#include "scenarios/scenario.hpp"

namespace reprise::scenarios {

namespace {

struct played_call {
  tensor<float> x;
  tensor<float> b;
  forward_ticket ticket;
  replayed_state<float> memory;
  floats memory_values;
};

class player {
 public:
  player(device_ref dev, const grad_schedule& schedule, model_slip slip);
  void run();

 private:
  void play_until_end();
  void play_one(const scheduled& call);
  void play_forward(const scheduled& call);
  void run_forward(const scheduled& by, const expected_values::outputs& values, ran how);
  void play_backward(const scheduled& call);
  void play_recall(int id);
  void play_update(int op);
  void play_spoil(int id);

  void check_counts();
  void check_steps();
  void keep(std::string what, view<const float> from, const floats& expected,
            const tensor<float>& held = {}) {
    kept_.keep(s_, now_, std::move(what), from, expected, held);
  }
  [[noreturn]] void fail(std::size_t call, std::string_view what) const;

  // All that was enqueued comes before what is enqueued from now on.
  void go_to(stream_ref s) {
    if (s == s_) return;
    order(s_, s);
    s_ = s;
  }
  tensor<float> uploaded(const floats& values);
  played_op& op(int i) { return *ops_[static_cast<std::size_t>(i)]; }
  op_kind kind(int i) const { return of_.ops[static_cast<std::size_t>(i)].kind; }
  const expected_values::op_values& expected_of(int i) const { return expected_.op(i); }

  const grad_schedule& of_;
  stream home_;
  stream other_;
  stream_ref s_;  // the one of them on which the program is now
  pool memory_;
  byte_budget budget_{byte_budget::unlimited};
  philox_counter counter_;
  std::map<int, std::shared_ptr<checkpoint>> spans_;
  std::vector<std::unique_ptr<played_op>> ops_;
  std::map<int, played_call> calls_;
  expected_values expected_;
  grad_model model_;
  std::vector<buffer<float>> given_memory_;  // for outputs
  kept_results kept_;
  std::size_t next_ = 0;  // call
  std::size_t now_ = 0;   // the one that is played
};

player::player(device_ref dev, const grad_schedule& schedule, model_slip slip)
    : of_{schedule},
      home_{dev},
      other_{dev},
      s_{home_},
      memory_{dev, "schedule"},
      counter_{first_counter(schedule)},
      expected_{schedule},
      model_{schedule, slip},
      kept_{memory_} {
  const world around{s_, memory_, budget_, counter_};
  for (std::size_t i = 0; i < of_.ops.size(); ++i) {
    const floats& weight = expected_of(static_cast<int>(i)).weight;
    ops_.push_back(make_op(around, of_.ops[i], static_cast<int>(i), weight));
  }
}

void player::run() {
  play_until_end();
  now_ = of_.calls.size();
  // A gradient may have been moved since, on the stream of the call that made it.
  go_to(other_);
  go_to(home_);
  check_steps();
  const std::optional<kept_results::difference> differs = kept_.first_difference(s_);
  if (differs) fail(differs->call, differs->text);
}

void player::play_until_end() {
  while (next_ < of_.calls.size()) {
    now_ = next_++;
    const scheduled& call = of_.calls[now_];
    if (!expected_.makes_sense(call)) continue;
    if (call.what == act::end) return;
    if (call.what == act::span || call.what == act::recompute) {
      std::shared_ptr<checkpoint>& kept = spans_[call.id];
      if (call.what == act::span || kept == nullptr) {
        kept = std::make_shared<checkpoint>(fmt::format("span {}", call.id),
                                            std::initializer_list<philox_counter*>{&counter_});
      }
      const std::shared_ptr<checkpoint> span = kept;  // one of the same number may lie in it
      expected_.begin(call);
      model_.begin(call);
      if (call.what == act::span) {
        span->forward([&] { play_until_end(); });
      } else {
        span->recompute([&] { play_until_end(); });
      }
      expected_.end();
      model_.end();
      continue;
    }
    try {
      play_one(call);
    } catch (const wrong_result&) {
      throw;
    } catch (const std::exception& thrown) {
      fail(now_, fmt::format("it threw: {}", thrown.what()));
    }
    check_counts();
  }
}

void player::play_one(const scheduled& call) {
  go_to(call.elsewhere ? other_ : home_);
  switch (call.what) {
    case act::forward:
    case act::infer: return play_forward(call);
    case act::again: {
      scheduled by = expected_.made_by(call.id);
      by.elsewhere = call.elsewhere;
      calls_.at(call.id).ticket = {};
      model_.drop(call.id);
      const ran how = model_.forward(by);
      return run_forward(by, expected_.again(call.id), how);
    }
    case act::backward: return play_backward(call);
    case act::drop:
      calls_.at(call.id).ticket = {};
      expected_.drop(call.id);
      return model_.drop(call.id);
    case act::spoil: return play_spoil(call.id);
    case act::recall: return play_recall(call.id);
    case act::update: return play_update(call.op);
    case act::reset: graphed::reset(); return model_.reset();
    case act::span:
    case act::recompute:
    case act::end: return;  // play_until_end's
  }
}

tensor<float> player::uploaded(const floats& values) {
  const tensor<float> made =
      make_tensor<float>(memory_, {static_cast<std::int64_t>(values.size()) / row, row}, s_);
  upload(s_, values, made.get());
  return made;
}

void player::play_forward(const scheduled& call) {
  played_call& made = calls_[call.id];
  const bool is_joined = kind(call.op) == op_kind::joined;
  if (!call.on_host || is_joined) {
    made.x = uploaded(input_values(of_, call.id, 0, 0, call.rows));
  }
  if (is_joined && !call.alone && !call.on_host) {
    made.b = uploaded(input_values(of_, call.id, 1, 0, call.rows));
  }
  const ran how = call.what == act::infer ? ran::eager : model_.forward(call);
  if (call.what == act::infer) model_.infer(call);
  run_forward(call, expected_.forward(call), how);
}

void player::run_forward(const scheduled& by, const expected_values::outputs& values, ran how) {
  played_op& with = op(by.op);
  played_call& made = calls_.at(by.id);
  const bool infers = by.what == act::infer;
  std::optional<suspended> away;
  if (by.suspended) away.emplace();
  const precision_scope in_force{by.in_force};

  // Host memory is the call's only until it returns.
  std::vector<operand> given;
  floats on_host[2];
  for (std::size_t slot = 0; slot < with.inputs.size(); ++slot) {
    const input<float>& in = with.inputs[slot];
    const tensor<float>& there = slot == 0 ? made.x : made.b;
    if (slot == 1 && by.alone) continue;
    if (there) {
      given.emplace_back(in, there);
      continue;
    }
    on_host[slot] = input_values(of_, by.id, static_cast<int>(slot), 0, by.rows);
    given.emplace_back(in.from_host(on_host[slot]));
  }
  if (by.into) {
    given_memory_.emplace_back(memory_, values.y.size(), s_);
    given.emplace_back(with.outputs[0].into(given_memory_.back().all()));
  }
  const forward_result done =
      infers ? with.op->infer(s_, operands{given}) : with.op->forward(s_, operands{given});
  for (floats& gone : on_host) std::ranges::fill(gone, 0.0F);

  const tensor<float> y = done[with.outputs[0]];
  keep("its output", y, values.y, by.id % 2 == 0 ? y : tensor<float>{});
  if (by.into) keep("its output in the caller's memory", given_memory_.back().all(), values.y);
  if (with.outputs.size() > 1) {
    made.memory = done.state(with.outputs[1]);
    made.memory_values = values.memory;
    if (infers) keep("its state", made.memory.read(s_), values.memory);
  }
  if (kind(by.op) == op_kind::counted) {
    keep("the running value", with.running.all(), expected_of(by.op).running);
  }
  if (infers) {
    if (done.ticket) fail(now_, "a call without a backward has a ticket");
    return;
  }
  made.ticket = done.ticket;
  if (done.how != how) {
    fail(now_, fmt::format("it was {}, and the model says {}", name_of(done.how), name_of(how)));
  }
  if ((done.ticket.id() == ticket_id::none) != (how == ran::eager)) {
    fail(now_, "eager calls, and they alone, have the ticket 0");
  }
}

void player::play_backward(const scheduled& call) {
  const scheduled by = expected_.made_by(call.id);
  played_op& with = op(by.op);
  const bool had_gradient = with.weight.has_grad;
  const expected_values::results wants = expected_.backward(call);
  std::vector<operand> cotangents;
  std::vector<tensor<float>> lasting;
  for (std::size_t slot = 0; slot < with.outputs.size(); ++slot) {
    if (slot == 1 && !call.by_memory) continue;
    lasting.push_back(
        uploaded(cotangent_values(of_, by.id, static_cast<int>(slot), wants.times, by.rows)));
    cotangents.push_back(gradient_of(with.outputs[slot], lasting.back()));
  }
  std::optional<suspended> away;
  if (call.suspended) away.emplace();
  const precision_scope in_force{call.in_force};
  const wanted what{call.inputs ? ~std::uint64_t{0} : 0, call.weights};
  const forward_ticket ticket = calls_.at(call.id).ticket;
  if (wants.is_stale) {
    try {
      with.op->backward(s_, ticket, operands{cotangents}, what);
    } catch (const stale_error&) {
      return;
    }
    fail(now_, "what it saved was changed, and it was not refused");
  }
  const ran how = model_.backward(call);
  const grad_result done = with.op->backward(s_, ticket, operands{cotangents}, what);
  // They may be reused when the call returns.
  for (const tensor<float>& gone : lasting) {
    fill(s_, write<float>{gone.get()}, std::numeric_limits<float>::quiet_NaN());
  }
  for (std::size_t slot = 0; slot < wants.gradients.size(); ++slot) {
    if (wants.gradients[slot].empty()) {
      if (done.gradients[slot]) fail(now_, "it formed a gradient that nobody wants");
      continue;
    }
    const tensor<float> dx = done[with.inputs[slot]];
    keep(fmt::format("the gradient of input {}", slot), dx, wants.gradients[slot],
         by.id % 2 == 0 ? dx : tensor<float>{});
  }
  if (kind(by.op) == op_kind::scaled) {
    if (with.weight.has_grad != (call.weights || had_gradient)) {
      fail(now_, "whether the weight has a gradient is wrong");
    }
    const floats& gradient = expected_of(by.op).gradient;
    if (!gradient.empty()) keep("the gradient of the weight", with.gradient.all(), gradient);
  }
  if (done.how != how) {
    fail(now_, fmt::format("it was {}, and the model says {}", name_of(done.how), name_of(how)));
  }
}

void player::play_recall(int id) {
  played_call& of = calls_.at(id);
  if (model_.recall(id)) {
    // Kept, since it may have been made on another stream, which does not wait for this one.
    const tensor<float> state = of.memory.read(s_);
    return keep("its state", state, of.memory_values, state);
  }
  try {
    of.memory.read(s_);
  } catch (const stale_error&) {
    return;
  }
  fail(now_, "the state was overwritten, and reading it was not refused");
}

void player::play_update(int i) {
  played_op& with = op(i);
  {
    const version_change moves{with.weight.version};
    launch(s_, descend, read(with.gradient.all()), 0.5F, inout(with.value.all()));
  }
  // What lies in a gradient that was dropped counts for nothing.
  with.weight.has_grad = false;
  fill(s_, write{with.gradient}, std::numeric_limits<float>::quiet_NaN());
  expected_.update(i);
  keep("the weight", with.value.all(), expected_of(i).weight);
}

void player::play_spoil(int id) {
  expected_.spoil(id);
  tensor<float>& x = calls_.at(id).x;
  upload(s_, input_values(of_, id, 0, expected_.spoiled(id), expected_.made_by(id).rows), x.get());
  x.changed();
}

void player::check_counts() {
  for (std::size_t i = 0; i < ops_.size(); ++i) {
    const std::string differs = model_.difference(static_cast<int>(i), ops_[i]->op->counts());
    if (!differs.empty()) fail(now_, fmt::format("of op {}, {}", i, differs));
  }
  if (counter_.next() != expected_.counter().next()) {
    fail(now_, fmt::format("the random counter is {}, not {}", counter_.next(),
                           expected_.counter().next()));
  }
}

void player::check_steps() {
  for (int i = 0; i < static_cast<int>(ops_.size()); ++i) {
    if (kind(i) != op_kind::counted) continue;
    std::int32_t steps = 0;
    copy(s_, read(op(i).steps.all()), write<std::int32_t>{view<std::int32_t>{&steps, 1}});
    s_.synchronize();
    if (steps != expected_of(i).steps) {
      fail(now_,
           fmt::format("op {} has counted {} forwards, not {}", i, steps, expected_of(i).steps));
    }
  }
}

void player::fail(std::size_t call, std::string_view what) const {
  const std::string text = call < of_.calls.size() ? text_of(of_.calls[call]) : "the end";
  throw wrong_result{fmt::format("call {} ({}): {}; schedule: {}", call, text, what, text_of(of_))};
}

}  // namespace

void play(device_ref dev, const grad_schedule& schedule, model_slip slip) {
  player{dev, schedule, slip}.run();
}

}  // namespace reprise::scenarios
