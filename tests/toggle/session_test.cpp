// Sessions: what is noted and bound is switched, and nothing else is.
#include "reprise/toggle/session.hpp"

#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

class sessions : public toggle_suite {};

TEST_P(sessions, a_set_decides_what_runs_from_the_next_launch_on) {
  for (const toggle_mode mode : {toggle_mode::automatic, toggle_mode::variants,
                                 toggle_mode::host_lazy, toggle_mode::host_eager}) {
    SCOPED_TRACE(name_of(mode));
    const auto x = number();
    toggle_session session{dev(), mode};
    const recorded of = record(session, s(), x, 4);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    EXPECT_EQ(digits_of(s(), step, x), 1234) << "all are on before the first set";
    for (const switch_set& on : {works({0, 2}), works({}), works({1}), works({0, 1, 2, 3}),
                                 works({0, 2}), works({}), works({3})}) {
      session.set(on);
      EXPECT_EQ(digits_of(s(), step, x), digits_in(4, on));
      EXPECT_EQ(digits_of(s(), step, x), digits_in(4, on));
    }
    session.clear();
    EXPECT_EQ(digits_of(s(), step, x), 1234);
  }
}

TEST_P(sessions, an_equal_set_makes_no_call) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 4);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({1}));
  step.launch(s());
  const calls_since now{*counts};
  session.set(works({1}));
  session.set(switch_set{key(1), key(1)});
  step.launch(s());
  EXPECT_EQ(now.all(), 1U) << "the launch";
  EXPECT_EQ(session.counts().switches, 1U);
}

TEST_P(sessions, a_work_with_two_keys_is_on_while_either_is) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const graph made = capture(s(), [&](stream_ref c) {
    capture_window window = session.open_window(c);
    window.note(key(0), append(c, x, 1));
    window.note({key(0), key(1)}, append(c, x, 2));
    window.note(key(1), append(c, x, 3));
  });
  const executable step = made.instantiate(s());
  session.bind(made, step);
  const std::vector<std::pair<switch_set, std::int32_t>> expected{
      {works({0}), 12}, {works({1}), 23}, {works({0, 1}), 123}, {works({}), 0}};
  for (const auto& [on, digits] : expected) {
    session.set(on);
    EXPECT_EQ(digits_of(s(), step, x), digits);
  }
}

TEST_P(sessions, copies_and_fills_are_switched_as_kernels_are) {
  const auto x = number();
  const auto y = number();
  const auto five = filled<std::int32_t>(1, 5);
  toggle_session session{dev()};
  const graph made = capture(s(), [&](stream_ref c) {
    capture_window window = session.open_window(c);
    window.note(key(0), copy(c, read<std::int32_t>{five}, write<std::int32_t>{x}));
    window.note(key(1), fill(c, write<std::int32_t>{y}, 6));
  });
  const executable step = made.instantiate(s());
  session.bind(made, step);
  session.set(works({1}));
  step.launch(s());
  EXPECT_EQ(value_of(s(), x), 0);
  EXPECT_EQ(value_of(s(), y), 6);
}

TEST_P(sessions, two_of_two_owners_switch_their_own) {
  const auto x = number();
  const auto y = number();
  toggle_session one{dev(), toggle_mode::host_lazy};
  toggle_session two{dev(), toggle_mode::variants};
  const recorded of_one = record(one, s(), x, 3);
  const recorded of_two = record(two, s(), y, 3);
  const executable first = of_one.made.instantiate(s());
  const executable second = of_two.made.instantiate(s());
  one.bind(of_one.made, first);
  two.bind(of_two.made, second);
  one.set(works({0}));
  two.set(works({1, 2}));
  EXPECT_EQ(digits_of(s(), first, x), 1);
  EXPECT_EQ(digits_of(s(), second, y), 23);
  one.clear();
  EXPECT_EQ(digits_of(s(), first, x), 123);
  EXPECT_EQ(digits_of(s(), second, y), 23);
}

TEST_P(sessions, what_cannot_be_set_is_refused_with_its_reason) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const auto refusal = [&](const switch_set& on) {
    return message_of<usage_error>([&] { session.set(on); });
  };
  EXPECT_TRUE(has(refusal(works({0})), "nothing is bound"));
  const recorded of = record(session, s(), x, 2);
  EXPECT_FALSE(session.active()) << "a close with nothing bound";
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  EXPECT_TRUE(session.active()) << "what was recorded can be bound later";
  {
    const recorded late = record(session, s(), x, 2);
    EXPECT_TRUE(has(refusal(works({0})), "is not bound"));
  }
  const recorded unlike = record(session, s(), x, 3);
  const executable other = unlike.made.instantiate(s());
  session.bind(unlike.made, other);
  EXPECT_TRUE(has(refusal(works({0})), "the same points"));
  session.unbind(other);
  EXPECT_TRUE(has(refusal(works({7})), "has key 7"));
  session.set(works({0}));
  EXPECT_TRUE(
      has(message_of<usage_error>([&] { session.bind(unlike.made, other); }), "the same points"));
  EXPECT_EQ(digits_of(s(), step, x), 1);
}

TEST_P(sessions, keys_may_differ_where_that_is_said) {
  const auto x = number();
  toggle_session session{dev(), {.mode = toggle_mode::host_lazy, .keys_may_differ = true}};
  const recorded small = record(session, s(), x, 2);
  const executable first = small.made.instantiate(s());
  session.bind(small.made, first);
  session.set(works({1, 2, 7}));
  EXPECT_EQ(digits_of(s(), first, x), 2);
  const recorded large = record(session, s(), x, 4);
  const executable second = large.made.instantiate(s());
  session.bind(large.made, second);
  EXPECT_EQ(digits_of(s(), second, x), 23);
  EXPECT_EQ(session.keys(), works({0, 1, 2, 3}));
}

// A clone that lacks works has the others switched.
TEST_P(sessions, a_clone_without_some_works_is_bound_as_well) {
  const auto x = number();
  toggle_session session{dev(), {.mode = toggle_mode::host_lazy, .keys_may_differ = true}};
  const recorded of = record(session, s(), x, 4);
  const graph rest = of.made.without({of.nodes[1]});
  const executable step = rest.instantiate(s());
  session.bind(rest, step);
  session.set(works({0, 1, 3}));
  EXPECT_EQ(digits_of(s(), step, x), 14);
}

TEST_P(sessions, one_executable_is_bound_by_one_owner) {
  const auto x = number();
  toggle_session one{dev(), toggle_mode::host_lazy};
  toggle_session two{dev(), toggle_mode::host_lazy};
  std::vector<node_id> ids;
  const graph made = capture(s(), [&](stream_ref c) {
    capture_window first = one.open_window(c);
    capture_window second = two.open_window(c);
    first.note(key(0), append(c, x, 1));
    second.note(key(0), append(c, x, 2));
  });
  const executable step = made.instantiate(s());
  one.bind(made, step);
  EXPECT_TRUE(has(message_of<usage_error>([&] { two.bind(made, step); }), "another owner"));
}

TEST_P(sessions, a_gate_that_was_there_is_asked_too_and_may_refuse) {
  struct refusing final : launch_gate {
    verdict before(executable_id&, stream_ref) override {
      ++asked;
      return answer;
    }
    int asked = 0;
    verdict answer = verdict::launch;
  } gate;
  const auto x = number();
  EXPECT_EQ(dev().set_gate(&gate), nullptr);
  {
    toggle_session session{dev(), toggle_mode::host_lazy};
    const recorded of = record(session, s(), x, 2);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    session.set(works({0}));
    EXPECT_EQ(digits_of(s(), step, x), 1);
    EXPECT_EQ(gate.asked, 1);
    gate.answer = verdict::refuse;
    const calls_since now{*counts};
    session.set(works({1}));
    EXPECT_THROW(step.launch(s()), usage_error);
    EXPECT_EQ(now[seam_call::enable], 0U) << "nothing is changed for what is refused";
  }
  EXPECT_EQ(dev().set_gate(nullptr), &gate);
}

TEST_P(sessions, an_executable_that_is_gone_is_forgotten_with_its_twins) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::variants};
  const recorded of = record(session, s(), x, 3);
  const executable stays = of.made.instantiate(s());
  session.bind(of.made, stays);
  {
    const executable goes = of.made.instantiate(s());
    session.bind(of.made, goes);
    session.set(works({1}));
    EXPECT_EQ(digits_of(s(), goes, x), 2);
    EXPECT_EQ(session.counts().bound, 2U);
    EXPECT_GT(session.counts().variant_bytes, 0U);
  }
  s().synchronize();
  dev().api().close_finished();
  session.set(works({2}));
  EXPECT_EQ(session.counts().bound, 1U);
  EXPECT_EQ(session.counts().variant_bytes, 0U);
  EXPECT_EQ(digits_of(s(), stays, x), 3);
}

// Destroyed with a launch in flight, all of these last until the device closes them.
TEST_P(sessions, a_graph_that_was_destroyed_in_flight_need_not_be_bound) {
  for (const bool is_over : {true, false}) {
    SCOPED_TRACE(is_over);
    const auto x = number();
    toggle_session session{dev()};
    event done{dev()};
    {
      const recorded gone = record(session, s(), x, 2);
      const executable step = gone.made.instantiate(s());
      for (int i = 0; i < 3; ++i) step.launch(s());
      done.record(s());
    }
    if (is_over) done.synchronize();
    const recorded of = record(session, s(), x, 3);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    session.set(works({1}));
    EXPECT_EQ(digits_of(s(), step, x), 2);
  }
}

TEST_P(sessions, an_executable_that_was_destroyed_in_flight_is_switched_no_more) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_eager};
  const recorded of = record(session, s(), x, 3);
  const executable stays = of.made.instantiate(s());
  session.bind(of.made, stays);
  event done{dev()};
  {
    const recorded other = record(session, s(), x, 4);
    const executable goes = other.made.instantiate(s());
    EXPECT_THROW(session.set(works({1})), usage_error) << "it is bound by nobody";
    session.unbind(stays);
    session.bind(other.made, goes);
    goes.launch(s());
    done.record(s());
  }
  done.synchronize();
  session.bind(of.made, stays);
  EXPECT_EQ(session.counts().bound, 1U);
  EXPECT_EQ(session.keys(), works({0, 1, 2}));
  session.set(works({1}));
  EXPECT_EQ(digits_of(s(), stays, x), 2);
}

INSTANTIATE_TEST_SUITE_P(devices, sessions, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
