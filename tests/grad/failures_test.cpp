// Whatever call of the device fails in a forward or a backward, for every one of them in turn: no
// backward runs on half-written memory, a gradient is delivered exactly once, state moves as in one
// forward, nothing leaks, and the next calls are as ever. G16 among them.
#include <map>
#include <set>

#include "reprise/device/faulty.hpp"
#include "reprise/device/gate.hpp"
#include "reprise/device/memory_report.hpp"
#include "reprise/grad/forward_call.hpp"
#include "reprise/grad/frame.hpp"
#include "tests/grad/support.hpp"
#include "tests/support/sanitized.hpp"

namespace reprise::test {
namespace {

// Calls of one op: F1 is a forward of the values 1, B1 a backward of it, S1 both.
struct scene {
  graphed_options options;
  std::string before;  // "S0 F1"
  std::string struck;  // one of whose calls of the device fails
};

class walk {
 public:
  walk(const std::string& spec, op_kind kind, const scene& of)
      : at_{spec, [this](auto bare) { return faulty(std::move(bare), plan_); }},
        of_{std::in_place, at_, kind, of.options} {
    for (std::size_t i = 0; i < of.before.size(); i += 3) run(of.before.substr(i, 2));
  }

  // True: the n-th call was made, and failed.
  bool strike(const std::string& what, std::uint64_t n) {
    bool fired = false;
    of_->at_call = [this, n] { plan_->fail_call(n); };
    of_->after_call = [this, &fired] {
      fired = plan_->fired();
      plan_->fail_call(0);
    };
    bool threw = false;
    try {
      run(what);
    } catch (const error& failed) {
      threw = true;
      EXPECT_TRUE(has(failed.what(), "injected fault")) << failed.what();
    }
    of_->at_call = nullptr;
    of_->after_call = nullptr;
    EXPECT_FALSE(stream_ref{at_.work}.capturing());
    EXPECT_TRUE(fired || !threw);
    if (threw && what[0] == 'F') of_->expect_once_or_not_at_all(what[1]);
    if (threw && what[0] == 'B') {
      failed_ = what[1];
      of_->expect_each_once_or_not_at_all(calls_.at(what[1]), what[1]);
    } else {
      of_->expect_state();
    }
    return fired;
  }

  // What failed, once more; all that is owed, and calls as ever.
  void settle() {
    if (failed_) run({'B', *failed_});
    const std::set<char> owed = owed_;
    for (const char which : owed) run({'B', which});
    run("S7");
    run("S8");
  }

  void expect_no_leak() {
    calls_.clear();
    kept_.clear();
    of_.reset();
    const memory_report report = report_memory(at_.opened);
    for (const pool_figures& one : report.pools) {
      EXPECT_EQ(one.used, 0U) << "pool '" << one.label << "'";
    }
    EXPECT_EQ(report.executables, 0U);
    EXPECT_EQ(report.pinned, 0U);
    EXPECT_EQ(at_.budget.held(), 0U);
  }

 private:
  void run(const std::string& what) {
    const char which = what[1];
    if (what[0] != 'B') {
      const subject::call made = of_->forward(which);
      of_->expect_output(made);
      calls_.insert_or_assign(which, made);
      owed_.insert(which);
    }
    if (what[0] != 'F') {
      const subject::call& call = calls_.at(which);
      kept_.push_back({call, of_->backward(call, which), which});
      owed_.erase(which);
    }
    of_->expect_state();
    // What was handed out before, too.
    for (const kept_gradients& one : kept_) of_->expect_gradients(one.of, one.got, one.values);
  }

  struct kept_gradients {
    subject::call of;
    grad_result got;
    int values;
  };

  const reports quiet_;  // of what fails while things are taken down
  std::shared_ptr<fault_plan> plan_ = std::make_shared<fault_plan>();
  grad_desk at_;
  std::optional<subject> of_;
  std::map<char, subject::call> calls_;
  std::vector<kept_gradients> kept_;
  std::set<char> owed_;
  std::optional<char> failed_;  // a backward
};

// A sanitizer takes fifteen times as long for a walk: there it is every fifth call, from another
// one on for each kind of op, so that they walk over all together.
constexpr std::uint64_t stride_here = test::sanitized ? 5 : 1;
constexpr std::uint64_t stride_of_a_card = 29;

class failure_cases : public grad_case {
 protected:
  // Until no call is the n-th any more. Each opens a device, which takes a card a third of a
  // second: there it is two kinds of op.
  void walk_all(const scene& one, std::uint64_t at_least) {
    const bool is_card = GetParam().starts_with("cuda");
    const std::uint64_t stride = is_card ? stride_of_a_card : stride_here;
    for (const op_kind kind : all_kinds) {
      if (is_card && kind != op_kind::counted && kind != op_kind::twofold) continue;
      std::uint64_t failed = 0;
      const std::uint64_t first = 1 + (is_card ? 4 : 1) * static_cast<std::uint64_t>(kind) % stride;
      for (std::uint64_t n = first;; n += stride) {
        ASSERT_LT(n, 250U) << "the walk over all calls does not end";
        SCOPED_TRACE(name_of(kind) + " " + text_of(one.options) + " " + one.before + " then " +
                     one.struck + ", call " + std::to_string(n));
        walk now{GetParam(), kind, one};
        const bool fired = now.strike(one.struck, n);
        now.settle();
        now.expect_no_leak();
        if (!fired) break;
        ++failed;
        if (HasFailure()) return;
      }
      if (stride == 1) {
        EXPECT_GE(failed, at_least) << "there are more calls than that";
      }
    }
  }
  // However gradients are returned.
  void walk_both(const on_conflict& policy, const std::string& before, const std::string& struck,
                 std::uint64_t at_least) {
    for (const gradients returned : {gradients::cloned, gradients::moved}) {
      walk_all({{.conflict = policy, .returned = returned}, before, struck}, at_least);
    }
  }
};

REPRISE_ON_EACH_DEVICE(failure_cases);

TEST_P(failure_cases, a_first_forward) {
  walk_all({{.conflict = hold{}}, "", "F1"}, 20);
}
TEST_P(failure_cases, a_replayed_forward) {
  walk_all({{.conflict = hold{}}, "S0 S1", "F2"}, 1);
}
TEST_P(failure_cases, G16_a_forward_that_takes_the_frame_of_a_pending_one) {
  walk_all({{.conflict = recompute{}}, "S0 F1", "F2"}, 1);
}
TEST_P(failure_cases, G16_a_first_forward_in_another_slot_than_a_pending_one) {
  walk_all({{.conflict = slots{2}}, "S0 F1", "F2"}, 20);
}
TEST_P(failure_cases, G16_a_forward_that_is_eager_beside_a_pending_one) {
  walk_all({{.conflict = hold{}}, "S0 F1", "F2"}, 3);
}
TEST_P(failure_cases, a_first_backward) {
  walk_both(hold{}, "F1", "B1", 15);
}
TEST_P(failure_cases, a_replayed_backward) {
  walk_both(hold{}, "S0 F1", "B1", 1);
}
TEST_P(failure_cases, a_backward_that_moves_a_gradient_which_is_held) {
  walk_both(hold{}, "S0 S1 F2", "B2", 1);
}
TEST_P(failure_cases, a_stale_backward) {
  walk_both(recompute{}, "S0 F1 F2", "B1", 2);
}
TEST_P(failure_cases, a_stale_first_backward) {
  walk_both(recompute{}, "F1 F2", "B1", 15);
}
TEST_P(failure_cases, a_second_backward) {
  walk_both(hold{}, "S0 F1 B1", "B1", 2);
}
TEST_P(failure_cases, a_backward_of_an_eager_forward) {
  walk_both(hold{}, "S0 F1 F2", "B2", 5);
}

// Whoever takes a frame has it from before the first work that writes there: at the launch, the
// ticket of the one before is void.
TEST_P(failure_cases, the_owner_of_a_frame_is_revoked_ahead_of_the_launch_that_takes_it) {
  struct looking_gate final : launch_gate {
    verdict before(executable_id&, stream_ref) override {
      ++launches;
      if (looks_at != nullptr) owned += looks_at->in->is_owned_by(looks_at->ticket) ? 1 : 0;
      return verdict::launch;
    }
    const forward_call* looks_at = nullptr;
    int launches = 0, owned = 0;
  };
  grad_desk at{GetParam(), [](auto bare) { return bare; }};
  subject of{at, op_kind::twofold, {.conflict = recompute{}}};
  of.step(0);
  const subject::call pending = of.forward(1);
  const std::shared_ptr<forward_call> call = pending.result.ticket.call();
  ASSERT_TRUE(call->in->is_owned_by(call->ticket));
  looking_gate gate;
  gate.looks_at = call.get();
  const device_ref device = at.work.device();
  device.set_gate(&gate);
  const subject::call taken = of.forward(2);
  device.set_gate(nullptr);
  EXPECT_EQ(taken.result.ticket.call()->in, call->in) << "the same frame";
  EXPECT_EQ(gate.launches, 1);
  EXPECT_EQ(gate.owned, 0);
  of.expect_gradients(pending, of.backward(pending, 1), 1);
}

// What a graph that never ran has left in the frame is not known.
TEST_P(failure_cases, a_first_replay_of_a_backward_takes_the_frame_with_it) {
  const auto plan = std::make_shared<fault_plan>();
  grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  subject of{at, op_kind::twofold};
  of.step(0);
  const subject::call made = of.forward(1);
  of.at_call = [&] { plan->fail_call(seam_call::launch, 1); };
  EXPECT_THROW((void)of.backward(made, 1), device_error);
  of.at_call = nullptr;
  of.expect_state();
  of.expect_gradients(made, of.backward(made, 1), 1);
  of.step(2);
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 1, backward_capture 1, forward backward 1, "
            "backward backward 2");
  graphed::reset();
  of.step(3);
  of.step(4);
  EXPECT_EQ(of.op().counts().forward_capture, 2U);
  EXPECT_EQ(of.op().counts().backward_replay, 1U);
}

// A later one has run before, and does not.
TEST_P(failure_cases, a_later_replay_of_a_backward_leaves_the_frame) {
  const auto plan = std::make_shared<fault_plan>();
  grad_desk at{GetParam(), [&](auto bare) { return faulty(std::move(bare), plan); }};
  subject of{at, op_kind::twofold};
  of.step(0);
  of.step(1);
  const subject::call made = of.forward(2);
  of.at_call = [&] { plan->fail_call(seam_call::launch, 1); };
  EXPECT_THROW((void)of.backward(made, 2), device_error);
  of.at_call = nullptr;
  of.expect_gradients(made, of.backward(made, 2), 2);
  of.step(3);
  EXPECT_EQ(of.counts(),
            "forward_capture 1, forward_replay 3, backward_capture 1, backward_replay 3, "
            "stale_replay 1")
      << "its ownership was consumed before it ran";
}

}  // namespace
}  // namespace reprise::test
