// A first backward that finds no memory: its pool is given back, what it owes is formed all the
// same, and ops outside of the pool replay on.
#include <string>
#include <utility>
#include <vector>

#include "scenarios/desk.hpp"
#include "scenarios/grad_expected.hpp"
#include "scenarios/grad_ops.hpp"
#include "scenarios/grad_played.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class grad_out_of_memory_slip { none, state_read_too_late };

constexpr int rows = 3;

// A rewinding op whose next backward runs out of memory, once.
class starving {
 public:
  starving(std::string name, bool& has_none) : inner_{std::move(name)}, has_none_{&has_none} {}
  const signature& describe() const { return inner_.describe(); }
  void forward(forward_scope& run) const { inner_.forward(run); }
  void backward(backward_scope& run) const {
    if (std::exchange(*has_none_, false)) {
      throw out_of_memory{{"allocate", "a full device", std::source_location::current()}, 1, 0};
    }
    inner_.backward(run);
  }
  const rewinding& inner() const { return inner_; }

 private:
  rewinding inner_;
  bool* has_none_;
};

// Calls of ops that square their input, each with its expected results.
class program {
 public:
  explicit program(desk& at) : at_{at}, results_{at.memory} {}

  forward_ticket forward(graphed& op, const rewinding& handles, int call) {
    const floats in = input_values(values_, call, 0, 0, rows);
    const tensor<float> x = make_tensor<float>(at_.memory, {rows, row}, at_.s);
    upload(at_.s, in, x.get());
    const forward_result done = op.forward(at_.s, {{handles.x, x}});
    results_.keep(at_.s, static_cast<std::size_t>(call), "an output", done[handles.y],
                  on_host::rewinding(in), {});
    return done.ticket;
  }
  void backward(graphed& op, const rewinding& handles, const forward_ticket& ticket, int call) {
    const floats in = input_values(values_, call, 0, 0, rows);
    const floats back = cotangent_values(values_, call, 0, 0, rows);
    const tensor<float> dy = make_tensor<float>(at_.memory, {rows, row}, at_.s);
    upload(at_.s, back, dy.get());
    const grad_result done = op.backward(at_.s, ticket, {gradient_of(handles.y, dy)});
    results_.keep(at_.s, static_cast<std::size_t>(call), "a gradient", done[handles.x],
                  on_host::rewinding_dx(back, in), {});
  }
  void step(graphed& op, const rewinding& handles, int call) {
    backward(op, handles, forward(op, handles, call), call);
  }
  void check() {
    const auto differs = results_.first_difference(at_.s);
    if (differs) require(false, differs->text);
  }

 private:
  desk& at_;
  grad_schedule values_{.seed = 3, .ops = {}, .calls = {}};
  kept_results results_;
};

constexpr auto released = static_cast<std::size_t>(eager_cause::released);

// `early`, `starved` and `closing` share a pool, which the backward of `closing` closes, so `late`
// has one of its own.
template <grad_out_of_memory_slip made>
void backward_without_memory(device_ref dev) {
  desk at{dev};
  byte_budget budget{byte_budget::unlimited};
  bool has_none = false;
  graphed_op early{rewinding{"early"}, budget};
  graphed_op memory{remembering{"memory"}, budget};
  graphed_op starved{starving{"starved", has_none}, budget};
  graphed_op closing{rewinding{"closing"}, budget};
  graphed_op late{rewinding{"late"}, budget};
  const rewinding& hungry = starved.op().inner();
  program p{at};

  const forward_ticket owed = p.forward(early, early.op(), 1);
  const tensor<float> x = make_tensor<float>(at.memory, {rows, row}, at.s);
  upload(at.s, floats(rows * row, 2.0F), x.get());
  replayed_state<float> state =
      memory.forward(at.s, {{memory.op().x, x}}).state(memory.op().memory);
  const forward_ticket starving_call = p.forward(starved, hungry, 2);
  p.step(closing, closing.op(), 3);
  p.step(late, late.op(), 4);
  const std::size_t held = budget.held();

  has_none = true;
  p.backward(starved, hungry, starving_call, 2);
  require(!has_none, "the backward was not asked");
  require(budget.held() < held, "no memory was given back");
  bool is_refused = false;
  try {
    state.read(at.s);
  } catch (const stale_error&) {
    if (made == grad_out_of_memory_slip::state_read_too_late) throw;
    is_refused = true;
  }
  require(is_refused, "a state was read out of memory that was given back");
  p.backward(early, early.op(), owed, 1);
  p.step(early, early.op(), 5);
  p.step(late, late.op(), 6);
  require(
      early.counts().eager_backward[released] == 2 && early.counts().eager_forward[released] == 1,
      "an op of the pool did not run eagerly");
  require(starved.counts().eager_backward[released] == 1, "the backward did not run eagerly");
  require(late.counts().forward_replay == 1 && late.counts().backward_replay == 1,
          "an op outside of the pool did not replay on");

  graphed::reset();
  p.step(early, early.op(), 7);
  p.step(early, early.op(), 8);
  require(early.counts().forward_capture == 2 && early.counts().forward_replay == 1 &&
              early.counts().backward_replay == 1,
          "a reset did not let the op be captured again");
  p.check();
}

}  // namespace

std::vector<scenario> grad_memory_scenarios() {
  return {
      {"backward_without_memory",
       "A first backward finds no memory: its pool is given back, and no gradient is lost.",
       backward_without_memory<grad_out_of_memory_slip::none>,
       {"graphed op: gave back a pool"},
       {{"state_read_too_late",
         "A state that a forward returned is read when its frame was given back.",
         {"thrown"},
         backward_without_memory<grad_out_of_memory_slip::state_read_too_late>}}},
  };
}

}  // namespace reprise::scenarios
