// Cases of the field about sessions and their guard: X1, X2, X5.
#include <functional>

#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

class guard_cases : public toggle_suite {};

// A gate that a user has put there.
class users_gate final : public launch_gate {
 public:
  verdict before(executable_id&, stream_ref) override {
    ++asked;
    return verdict::launch;
  }
  int asked = 0;
};

refused why_refused(const std::function<void()>& launches) {
  try {
    launches();
  } catch (const switch_refusal& refusal) {
    EXPECT_FALSE(has(refusal.what(), "\n"));
    return refusal.why();
  }
  ADD_FAILURE() << "launched";
  return refused::session_ended;
}

TEST_P(guard_cases, X01_an_ended_session_leaves_nothing_behind) {
  users_gate gate;
  dev().set_gate(&gate);
  const auto x = number();
  {
    toggle_session session{dev()};
    EXPECT_EQ(dev().set_gate(&gate), &gate) << "before the first window nothing is hooked";
    const recorded of = record(session, s(), x, 3);
    EXPECT_EQ(dev().set_gate(&gate), &gate) << "a close with nothing bound takes it off";
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    session.set(works({1}));
    EXPECT_EQ(digits_of(s(), step, x), 2);
    session.clear();
    EXPECT_FALSE(session.active());
    EXPECT_EQ(digits_of(s(), step, x), 123);
    EXPECT_EQ(dev().set_gate(&gate), &gate);
    const auto seen = session.counts().launches;
    const recorded after{capture(s(), [&](stream_ref c) { append(c, x, 4); }), {}};
    const executable other = after.made.instantiate(s());
    const calls_since now{*counts};
    other.launch(s());
    EXPECT_EQ(now.all(), 1U);
    EXPECT_EQ(session.counts().launches, seen);
  }
  EXPECT_EQ(dev().set_gate(nullptr), &gate);
}

TEST_P(guard_cases, X01_of_two_sessions_the_last_one_out_restores) {
  users_gate gate;
  dev().set_gate(&gate);
  const auto x = number();
  toggle_session outer{dev(), toggle_mode::host_lazy};
  toggle_session inner{dev(), toggle_mode::host_lazy};
  const recorded of_outer = record(outer, s(), x, 2);
  const executable first = of_outer.made.instantiate(s());
  outer.bind(of_outer.made, first);
  const recorded of_inner = record(inner, s(), x, 3);
  const executable second = of_inner.made.instantiate(s());
  inner.bind(of_inner.made, second);
  outer.clear();  // not in the order that they began
  inner.set(works({2}));
  EXPECT_EQ(digits_of(s(), second, x), 3);
  EXPECT_EQ(digits_of(s(), first, x), 12) << "nobody's any more";
  inner.clear();
  EXPECT_EQ(dev().set_gate(nullptr), &gate);
}

TEST_P(guard_cases, X01_a_gate_that_came_over_it_stays) {
  users_gate over;
  const auto x = number();
  toggle_session session{dev()};
  const recorded of = record(session, s(), x, 2);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  launch_gate* const ours = dev().set_gate(&over);
  EXPECT_NE(ours, nullptr);
  session.clear();
  EXPECT_EQ(dev().set_gate(ours), &over);
  EXPECT_EQ(digits_of(s(), step, x), 12) << "and ours passes on";
  dev().set_gate(nullptr);
}

TEST_P(guard_cases, X01_a_gate_that_came_over_it_may_pass_on_to_it_in_a_later_session) {
  struct passing_on final : launch_gate {
    verdict before(executable_id& may_swap, stream_ref stream) override {
      ++asked;
      return next->before(may_swap, stream);
    }
    launch_gate* next = nullptr;
    int asked = 0;
  } over;
  users_gate first;
  dev().set_gate(&first);
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded early = record(session, s(), x, 2);
  const executable step = early.made.instantiate(s());
  session.bind(early.made, step);
  over.next = dev().set_gate(&over);
  session.clear();
  EXPECT_EQ(digits_of(s(), step, x), 12);
  EXPECT_EQ(first.asked, 1);
  const recorded late = record(session, s(), x, 3);
  const executable again = late.made.instantiate(s());
  session.bind(late.made, again);
  session.set(works({1}));
  const int asked = over.asked;
  EXPECT_EQ(digits_of(s(), again, x), 2);
  EXPECT_EQ(over.asked, asked + 1);
  EXPECT_EQ(first.asked, 2) << "each is asked once";
  session.clear();
  EXPECT_EQ(digits_of(s(), again, x), 123);
  EXPECT_EQ(dev().set_gate(nullptr), &over);
}

TEST_P(guard_cases, X02_only_what_has_works_of_the_session_is_stopped) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  toggle_session others{dev(), toggle_mode::host_lazy};
  const recorded a = record(session, s(), x, 2);
  const executable run_a = a.made.instantiate(s());
  session.bind(a.made, run_a);
  const graph b = capture(s(), [&](stream_ref c) { append(c, x, 5); });
  const executable run_b = b.instantiate(s());
  const recorded c = record(others, s(), x, 3);
  const executable run_c = c.made.instantiate(s());
  session.set(works({1}));
  EXPECT_EQ(digits_of(s(), run_a, x), 2);
  EXPECT_EQ(digits_of(s(), run_b, x), 5);
  EXPECT_EQ(digits_of(s(), run_c, x), 123) << "of an owner who has no session now";
  const recorded d = record(session, s(), x, 2);
  const executable run_d = d.made.instantiate(s());
  fill(s(), write<std::int32_t>{x}, 0);
  const calls_since now{*counts};
  EXPECT_EQ(why_refused([&] { run_d.launch(s()); }), refused::unbound);
  EXPECT_EQ(now[seam_call::launch], 0U);
  EXPECT_EQ(value_of(s(), x), 0);
  EXPECT_TRUE(has(message_of<switch_refusal>([&] { run_d.launch(s()); }), "bind(graph"));
  session.bind(d.made, run_d);
  EXPECT_EQ(digits_of(s(), run_d, x), 2) << "the remedy";
  EXPECT_EQ(session.counts().refused, 2U);
  EXPECT_EQ(digits_of(s(), run_b, x), 5);
}

TEST_P(guard_cases, X02_what_an_earlier_session_recorded_is_stale) {
  const auto x = number();
  const toggle_owner owner = next_toggle_owner();
  toggle_session session{dev(), {.mode = toggle_mode::host_lazy, .owner = owner}};
  const recorded early = record(session, s(), x, 2);
  const executable step = early.made.instantiate(s());
  session.bind(early.made, step);
  session.set(works({1}));
  step.launch(s());
  session.clear();
  EXPECT_EQ(digits_of(s(), step, x), 12) << "with no session nothing is stopped";
  toggle_session later{dev(), {.mode = toggle_mode::host_lazy, .owner = owner}};
  const recorded fresh = record(later, s(), x, 2);
  const executable anew = fresh.made.instantiate(s());
  later.bind(fresh.made, anew);
  EXPECT_EQ(why_refused([&] { step.launch(s()); }), refused::stale);
  EXPECT_TRUE(
      has(message_of<usage_error>([&] { later.bind(early.made, step); }), "earlier session"));
  later.set(works({0}));
  EXPECT_EQ(digits_of(s(), anew, x), 1);
  later.clear();
  EXPECT_EQ(digits_of(s(), step, x), 12);
}

TEST_P(guard_cases, X02_a_session_that_was_cleared_knows_its_recordings_no_more) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded early = record(session, s(), x, 2);
  const executable step = early.made.instantiate(s());
  session.bind(early.made, step);
  session.clear();
  const recorded fresh = record(session, s(), x, 2);
  const executable anew = fresh.made.instantiate(s());
  session.bind(fresh.made, anew);
  EXPECT_EQ(why_refused([&] { step.launch(s()); }), refused::stale);
  EXPECT_THROW(session.bind(early.made, step), usage_error);
}

TEST_P(guard_cases, X02_a_device_driven_graph_that_is_not_bound_is_stopped_too) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::device};
  const fixed_executable bound_one = record_driven(session, s(), x, 2, 2);
  session.bind(bound_one);
  const fixed_executable late = record_driven(session, s(), x, 2, 2);
  EXPECT_EQ(why_refused([&] { late.launch(s()); }), refused::unbound);
  session.bind(late);
  EXPECT_EQ(digits_of(s(), late, x), 12);
}

TEST_P(guard_cases, X02_what_was_unbound_is_stopped_until_it_is_bound_again) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 3);
  const executable stays = of.made.instantiate(s());
  const executable goes = of.made.instantiate(s());
  session.bind(of.made, stays);
  session.bind(of.made, goes);
  session.set(works({1}));
  EXPECT_EQ(digits_of(s(), goes, x), 2);
  session.unbind(goes);
  EXPECT_EQ(why_refused([&] { goes.launch(s()); }), refused::unbound);
  session.bind(of.made, goes);
  EXPECT_EQ(digits_of(s(), goes, x), 2);
  session.set(works({0, 1}));
  session.unbind(goes);
  session.clear();
  EXPECT_EQ(digits_of(s(), goes, x), 123);
}

// It is found out by a call that switches, and that is remembered.
TEST_P(guard_cases, X02_looking_at_an_executable_leaves_it_as_its_binding_believes) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 3);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({1, 2}));
  const recorded late = record(session, s(), x, 3);
  const executable run = late.made.instantiate(s());
  EXPECT_EQ(why_refused([&] { run.launch(s()); }), refused::unbound);
  session.bind(late.made, run);
  session.set(works({0, 1, 2}));
  EXPECT_EQ(digits_of(s(), run, x), 123);
  session.set(works({1, 2}));
  const executable noticed = of.made.instantiate(s());
  EXPECT_EQ(digits_of(s(), noticed, x), 23);
  session.set(works({0, 1, 2}));
  EXPECT_EQ(digits_of(s(), noticed, x), 123);
}

TEST_P(guard_cases, X02_an_executable_of_a_part_is_not_taken_for_one_of_the_whole) {
  const auto x = number();
  toggle_session session{dev(), {.mode = toggle_mode::host_lazy, .keys_may_differ = true}};
  const recorded of = record(session, s(), x, 3);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({2}));
  const graph part = of.made.without({of.nodes[1]});
  const executable run = part.instantiate(s());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(why_refused([&] { run.launch(s()); }), refused::unbound);
  }
  EXPECT_TRUE(session.active());
  session.set(all_but(3, {}));
  const executable later = part.instantiate(s());
  EXPECT_EQ(digits_of(s(), later, x), 13) << "with all on there is no difference";
  session.set(works({2}));
  EXPECT_EQ(why_refused([&] { later.launch(s()); }), refused::unbound);
  session.bind(part, run);
  EXPECT_EQ(digits_of(s(), run, x), 3);
  session.set(works({0, 1}));
  EXPECT_EQ(digits_of(s(), run, x), 1);
  EXPECT_EQ(digits_of(s(), step, x), 12);
}

TEST_P(guard_cases, X02_an_exempt_executable_is_left_alone) {
  const auto x = number();
  executable_id spared = executable_id::none;
  toggle_session session{dev(), {.mode = toggle_mode::host_lazy, .exempt = [&](executable_id one) {
                                   return one == spared;
                                 }}};
  const recorded a = record(session, s(), x, 2);
  const executable run_a = a.made.instantiate(s());
  session.bind(a.made, run_a);
  const recorded d = record(session, s(), x, 2);
  const executable run_d = d.made.instantiate(s());
  EXPECT_EQ(why_refused([&] { run_d.launch(s()); }), refused::unbound);
  spared = executable_ref{run_d}.id();
  EXPECT_EQ(digits_of(s(), run_d, x), 12);
}

// Each kind of work alone, a kind of the test's own among them: what is counted is the launch, not
// the kind.
TEST_P(guard_cases, X05_a_graph_with_one_kind_of_work_alone_is_seen) {
  const auto x = number();
  const auto y = number();
  const std::vector<std::pair<std::string, std::function<node_id(stream_ref)>>> kinds{
      {"kernel", [&](stream_ref c) { return append(c, x, 1); }},
      {"copy",
       [&](stream_ref c) { return copy(c, read<std::int32_t>{y}, write<std::int32_t>{x}); }},
      {"fill", [&](stream_ref c) { return fill(c, write<std::int32_t>{x}, 1); }},
      {"the test's own", [&](stream_ref c) {
         return external(c, "own", {access{x.all().data(), 4, true}}, [&](void* native) {
           on_cuda() ? append_twice_native(native, x.all().data(), 1) : void(*x.all().data() = 11);
         });
       }}};
  for (const auto& [name, work] : kinds) {
    SCOPED_TRACE(name);
    toggle_session session{dev(), toggle_mode::host_lazy};
    const recorded a = record(session, s(), y, 1);
    const executable run_a = a.made.instantiate(s());
    session.bind(a.made, run_a);
    // Counted, in no window.
    const graph late =
        capture(s(), [&, &launched = work](stream_ref c) { session.counted(c, launched(c)); });
    const calls_since now{*counts};
    const executable unbound = late.instantiate(s());
    EXPECT_EQ(now[seam_call::instantiate], 1U) << "which uploads";
    EXPECT_EQ(why_refused([&] { unbound.launch(s()); }), refused::unbound);
    EXPECT_TRUE(has(message_of<usage_error>([&] { session.bind(late, unbound); }), "not noted"));
    // Noted.
    const graph made = capture(s(), [&, &launched = work](stream_ref c) {
      capture_window window = session.open_window(c);
      const node_id node = launched(c);
      session.counted(c, node);
      window.note(key(0), node);
    });
    const executable step = made.instantiate(s());
    EXPECT_EQ(why_refused([&] { step.launch(s()); }), refused::unbound);
    session.bind(made, step);
    fill(s(), write<std::int32_t>{x}, 9);
    EXPECT_NO_THROW(step.launch(s()));
    EXPECT_NE(value_of(s(), x), 9);
  }
}

TEST_P(guard_cases, X05_launches_elsewhere_count_for_nothing) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded a = record(session, s(), x, 1);
  const executable run_a = a.made.instantiate(s());
  session.bind(a.made, run_a);
  const stream beside{dev()};
  const auto y = number();
  order(s(), beside);
  const graph b = capture(s(), [&](stream_ref c) {
    session.counted(beside, append(beside, y, 1));  // eager
    append(c, x, 5);
  });
  const executable run_b = b.instantiate(s());
  order(beside, s());
  EXPECT_EQ(digits_of(s(), run_b, x), 5);
}

INSTANTIATE_TEST_SUITE_P(devices, guard_cases, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
