// Schedules by the seed: the shapes that training has, with what happens in between.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "scenarios/grad_schedule.hpp"

namespace reprise::scenarios {

namespace {

constexpr std::size_t most_calls = 40;

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the next state is the last one plus a constant.
class schedule_dice {
 public:
  explicit schedule_dice(std::uint64_t seed) : state_{seed} {}

  int below(int limit) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebU;
    mixed ^= mixed >> 31;
    return static_cast<int>(mixed % static_cast<std::uint64_t>(limit));
  }
  int between(int least, int most) { return least + below(most - least + 1); }
  bool chance(int percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

class writer {
 public:
  writer(std::uint64_t seed, int shape)
      : thrown_{seed * schedule_shapes + static_cast<std::uint64_t>(shape)} {
    made_.seed = seed;
    spiced_ = thrown_.chance(60);
  }

  grad_schedule accumulation();
  grad_schedule pipeline();
  grad_schedule interleaved();
  grad_schedule checkpointed();
  grad_schedule retained();
  grad_schedule anything();

 private:
  using ids = std::vector<int>;

  void add_ops(int count);
  void add(const scheduled& call) { made_.calls.push_back(call); }
  void add(act what, int id) {
    scheduled call;
    call.what = what;
    call.id = id;
    add(call);
  }
  int forward(int op);
  void backward(int id);
  void drop(int id) { add(act::drop, id); }
  // A micro-batch through all ops, and back.
  ids down();
  void up(const ids& batch);
  void update_all();
  void surprise();
  bool is_full() const { return made_.calls.size() >= most_calls; }
  int count() const { return static_cast<int>(made_.ops.size()); }
  int any_id() { return thrown_.between(1, std::max(1, next_id_ - 1)); }
  grad_schedule done() {
    if (made_.calls.size() > most_calls) made_.calls.resize(most_calls);
    return std::move(made_);
  }

  grad_schedule made_;
  schedule_dice thrown_;
  bool spiced_ = false;       // other shapes, precisions, suspensions and whatever comes in between
  std::vector<int> on_host_;  // by op: how likely, in percent
  int next_id_ = 1;
};

void writer::add_ops(int count) {
  const int policy = thrown_.below(4);  // one for all, or each its own
  for (int i = 0; i != count; ++i) {
    scheduled_op op;
    op.kind = static_cast<op_kind>(thrown_.below(op_kinds));
    switch (policy == 3 ? thrown_.below(3) : policy) {
      case 0: op.options.conflict = hold{}; break;
      case 1: op.options.conflict = recompute{}; break;
      default: op.options.conflict = slots{thrown_.between(1, 3)};
    }
    if (thrown_.chance(30)) op.options.returned = gradients::moved;
    if (thrown_.chance(40)) op.options.keys = 2;
    const bool may_share = op.kind != op_kind::scaled && op.kind != op_kind::counted;
    if (may_share && thrown_.chance(30)) op.work = 1;
    made_.ops.push_back(op);
    on_host_.push_back(thrown_.chance(15) ? 95 : 3);
  }
}

int writer::forward(int op) {
  if (spiced_) surprise();
  scheduled call;
  call.id = next_id_++;
  call.op = op;
  // An op is given host memory always, or now and then.
  call.on_host = thrown_.chance(on_host_[static_cast<std::size_t>(op)]);
  call.into = thrown_.chance(15);
  if (spiced_) {
    if (thrown_.chance(20)) call.rows = 2;
    call.alone = thrown_.chance(25);
    call.suspended = thrown_.chance(6);
    call.elsewhere = thrown_.chance(8);
    if (thrown_.chance(6)) call.in_force.products = matrix_precision::tf32;
    if (thrown_.chance(6)) call.in_force.casts = cast_mode::bf16;
    if (thrown_.chance(6)) call.what = act::infer;
  }
  add(call);
  if (thrown_.chance(10)) add(act::recall, call.id);
  return call.id;
}

void writer::backward(int id) {
  scheduled call;
  call.what = act::backward;
  call.id = id;
  call.by_memory = thrown_.chance(30);
  if (spiced_) {
    if (thrown_.chance(8)) call.inputs = false;
    if (thrown_.chance(8)) call.weights = false;
    call.suspended = thrown_.chance(4);
    call.elsewhere = thrown_.chance(8);
    if (thrown_.chance(8)) call.in_force.products = matrix_precision::tf32;
  }
  add(call);
}

void writer::surprise() {
  switch (thrown_.below(30)) {
    case 0: add(act::spoil, any_id()); break;
    case 1: drop(any_id()); break;
    case 2: backward(any_id()); break;
    case 3: add(act::again, any_id()); break;
    case 4: update_all(); break;
    case 5: add(act::reset, 0); break;
    case 6: add(act::recall, any_id()); break;
    default: break;
  }
}

writer::ids writer::down() {
  ids batch;
  for (int op = 0; op != count(); ++op) batch.push_back(forward(op));
  return batch;
}

void writer::up(const ids& batch) {
  const bool keeps = thrown_.chance(15);  // tickets that a trainer forgets to drop
  for (std::size_t i = batch.size(); i-- != 0;) {
    backward(batch[i]);
    if (!keeps) drop(batch[i]);
  }
}

void writer::update_all() {
  for (int op = 0; op != count(); ++op) {
    if (made_.ops[static_cast<std::size_t>(op)].kind != op_kind::scaled) continue;
    scheduled call;
    call.what = act::update;
    call.op = op;
    add(call);
  }
}

grad_schedule writer::accumulation() {
  add_ops(thrown_.between(1, 4));
  const int window = thrown_.between(1, 4);
  const bool at_once = thrown_.chance(50);  // each backward behind its forward
  if (thrown_.chance(30) && !at_once) {
    for (scheduled_op& op : made_.ops) op.options.conflict = slots_for_accumulation(window);
  }
  while (!is_full()) {
    std::vector<ids> batches;
    const int length = thrown_.chance(20) ? thrown_.between(1, window) : window;
    for (int i = 0; i != length; ++i) {
      batches.push_back(down());
      if (at_once) up(batches.back());
    }
    for (const ids& batch : batches) {
      if (!at_once) up(batch);
    }
    update_all();
  }
  return done();
}

grad_schedule writer::pipeline() {
  const int depth = thrown_.between(2, 4);
  add_ops(depth);
  const int batches = thrown_.between(2, 20 / (2 * depth));
  if (thrown_.chance(50)) {
    for (int stage = 0; stage != depth; ++stage) {
      made_.ops[static_cast<std::size_t>(stage)].options.conflict =
          slots_for_pipeline(depth, stage, batches);
    }
  }
  // By stage: how many forwards and backwards are done, and the calls.
  struct stage_state {
    int forwards = 0;
    int backwards = 0;
    ids calls;
  };
  while (!is_full()) {
    std::vector<stage_state> stages(static_cast<std::size_t>(depth));
    const auto at = [&](int stage) -> stage_state& {
      return stages[static_cast<std::size_t>(stage)];
    };
    while (at(0).backwards != batches) {
      for (int stage = 0; stage != depth; ++stage) {
        stage_state& here = at(stage);
        const int ahead = std::min(depth - stage, batches);  // forwards before the first backward
        const bool wants_forward =
            here.forwards != batches && here.forwards - here.backwards < ahead;
        const bool has_input = stage == 0 || at(stage - 1).forwards > here.forwards;
        if (wants_forward && has_input) {
          here.calls.push_back(forward(stage));
          ++here.forwards;
          continue;
        }
        const bool has_gradient = stage + 1 == depth || at(stage + 1).backwards > here.backwards;
        if (here.backwards == here.forwards || !has_gradient) continue;
        const int id = here.calls[static_cast<std::size_t>(here.backwards)];
        backward(id);
        drop(id);
        ++here.backwards;
      }
    }
    update_all();
  }
  return done();
}

grad_schedule writer::interleaved() {
  add_ops(thrown_.between(1, 4));
  while (!is_full()) {
    // Two rows, each of which goes down and up; steps of one come between steps of the other.
    int gone[2] = {0, 0};
    ids calls[2] = {ids(made_.ops.size(), 0), ids(made_.ops.size(), 0)};
    while (gone[0] != 2 * count() || gone[1] != 2 * count()) {
      const int row = thrown_.below(2);
      if (gone[row] == 2 * count()) continue;
      const int step = gone[row]++;
      if (step < count()) {
        calls[row][static_cast<std::size_t>(step)] = forward(step);
      } else {
        const int id = calls[row][static_cast<std::size_t>(2 * count() - 1 - step)];
        backward(id);
        drop(id);
      }
    }
    if (thrown_.chance(50)) update_all();
  }
  return done();
}

grad_schedule writer::checkpointed() {
  const int spans = thrown_.between(1, 3);
  // Each span has layers of its own, as a network has, or all run all ops.
  const bool own_layers = spans > 1 && thrown_.chance(70);
  add_ops(own_layers ? spans * thrown_.between(1, 2) : thrown_.between(1, 4));
  if (thrown_.chance(60)) {
    constexpr op_kind shared_kinds[] = {op_kind::noisy, op_kind::rewinding, op_kind::joined,
                                        op_kind::remembering};
    const op_kind kind = shared_kinds[thrown_.below(4)];
    for (scheduled_op& op : made_.ops) {
      op.kind = kind;
      op.work = 1;
    }
  }
  while (!is_full()) {
    std::vector<ids> batches;
    for (int label = 1; label <= spans; ++label) {
      add(act::span, label);
      ids& batch = batches.emplace_back();
      for (int op = 0; op != count(); ++op) {
        if (!own_layers || op % spans == label - 1) batch.push_back(forward(op));
      }
      add(act::end, 0);
      for (const int id : batch) drop(id);
    }
    for (int label = spans; label != 0; --label) {
      const ids& batch = batches[static_cast<std::size_t>(label) - 1];
      add(act::recompute, label);
      for (const int id : batch) add(act::again, id);
      add(act::end, 0);
      up(batch);
    }
    update_all();
  }
  return done();
}

grad_schedule writer::retained() {
  add_ops(thrown_.between(1, 4));
  ids kept;
  while (!is_full()) {
    const ids batch = down();
    for (std::size_t i = batch.size(); i-- != 0;) backward(batch[i]);
    kept.insert(kept.end(), batch.begin(), batch.end());
    for (int times = thrown_.below(4); times != 0; --times) {
      const int which = thrown_.below(static_cast<int>(kept.size()));
      backward(kept[static_cast<std::size_t>(which)]);
      if (thrown_.chance(30)) drop(kept[static_cast<std::size_t>(which)]);
    }
    if (thrown_.chance(20)) update_all();
  }
  return done();
}

grad_schedule writer::anything() {
  add_ops(thrown_.between(1, 6));
  spiced_ = true;
  int open = 0;
  while (!is_full()) {
    const int roll = thrown_.below(100);
    if (roll < 42) {
      forward(thrown_.below(count()));
    } else if (roll < 78) {
      // One of the last few, mostly.
      const int back = thrown_.chance(80) ? thrown_.below(5) : thrown_.below(next_id_);
      backward(std::max(1, next_id_ - 1 - back));
    } else if (roll < 86) {
      drop(any_id());
    } else if (roll < 90) {
      update_all();
    } else if (roll < 94) {
      add(thrown_.chance(50) ? act::span : act::recompute, thrown_.between(1, 2));
      ++open;
    } else if (roll < 97 && open != 0) {
      add(act::end, 0);
      --open;
    } else {
      surprise();
    }
  }
  return done();
}

}  // namespace

grad_schedule random_schedule(schedule_shape shape, std::uint64_t seed) {
  writer by{seed, static_cast<int>(shape)};
  switch (shape) {
    case schedule_shape::accumulation: return by.accumulation();
    case schedule_shape::pipeline: return by.pipeline();
    case schedule_shape::interleaved: return by.interleaved();
    case schedule_shape::checkpointed: return by.checkpointed();
    case schedule_shape::retained: return by.retained();
    case schedule_shape::anything: break;
  }
  return by.anything();
}

grad_schedule random_schedule(std::uint64_t seed) {
  return random_schedule(static_cast<schedule_shape>(schedule_dice{seed}.below(schedule_shapes)),
                         seed);
}

}  // namespace reprise::scenarios
