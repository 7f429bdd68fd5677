// Cases of the field about executables and what is on in them: X3, X4, X8, X9, X11, X12, X14.
#include "tests/toggle/support.hpp"

#include "reprise/telemetry/log.hpp"

namespace reprise::test {
namespace {

class toggle_cases : public toggle_suite {};

TEST_P(toggle_cases, X03_a_new_executable_is_brought_up_to_date_before_it_runs) {
  for (const bool by_the_gate : {false, true}) {
    SCOPED_TRACE(by_the_gate ? "noticed by the gate" : "bound");
    const auto x = number();
    toggle_session session{dev(), toggle_mode::host_lazy};
    const recorded of = record(session, s(), x, 7);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    session.set(all_but(7, {2, 5}));
    EXPECT_EQ(digits_of(s(), step, x), 12457);
    const executable anew = of.made.instantiate(s());
    const calls_since now{*counts};
    if (!by_the_gate) session.bind(of.made, anew);
    EXPECT_EQ(now[seam_call::enable], 0U);
    EXPECT_EQ(digits_of(s(), anew, x), 12457);
    EXPECT_EQ(now[seam_call::enable], 2U);
    EXPECT_EQ(session.counts().rebound, by_the_gate ? 1U : 0U);
    session.bind(of.made, anew);
    EXPECT_EQ(digits_of(s(), anew, x), 12457);
    EXPECT_EQ(digits_of(s(), step, x), 12457) << "the old one is bound still";
    EXPECT_EQ(now[seam_call::enable], 2U);
  }
}

TEST_P(toggle_cases, X03_with_none_and_with_all_on) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 4);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({}));
  const executable none = of.made.instantiate(s());
  session.bind(of.made, none);
  const calls_since now{*counts};
  EXPECT_EQ(digits_of(s(), none, x), 0);
  EXPECT_EQ(now[seam_call::enable], 4U);
  session.set(all_but(4, {}));
  const executable all = of.made.instantiate(s());
  session.bind(of.made, all);
  const calls_since later{*counts};
  EXPECT_EQ(digits_of(s(), all, x), 1234);
  EXPECT_EQ(later[seam_call::enable], 0U);
}

TEST_P(toggle_cases, X04_a_new_executable_has_a_change_that_was_made_at_once_before_it) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_eager};
  const recorded of = record(session, s(), x, 7);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  const calls_since now{*counts};
  session.set(all_but(7, {2, 5}));
  EXPECT_EQ(now[seam_call::enable], 2U) << "at once";
  EXPECT_EQ(digits_of(s(), step, x), 12457);
  EXPECT_EQ(now[seam_call::enable], 2U) << "and not again";
  const executable anew = of.made.instantiate(s());
  session.bind(of.made, anew);
  EXPECT_EQ(digits_of(s(), anew, x), 12457);
  EXPECT_EQ(now[seam_call::enable], 4U);
}

TEST_P(toggle_cases, X04_a_change_at_once_is_refused_while_a_launch_may_be_in_flight) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_eager};
  const recorded of = record(session, s(), x, 3);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  held_stream held{s()};
  step.launch(s());
  if (runs_later()) {
    const calls_since now{*counts};
    EXPECT_TRUE(has(message_of<usage_error>([&] { session.set(works({1})); }), "host_eager"));
    EXPECT_EQ(now[seam_call::enable], 0U);
  }
  held.release();
  s().synchronize();
  session.set(works({1}));
  EXPECT_EQ(digits_of(s(), step, x), 2);
}

TEST_P(toggle_cases, X08_the_template_may_go_before_its_works_are_switched) {
  for (const toggle_mode mode :
       {toggle_mode::automatic, toggle_mode::variants, toggle_mode::host_lazy}) {
    SCOPED_TRACE(name_of(mode));
    const auto x = number();
    toggle_session session{dev(), mode};
    std::weak_ptr<const int> held;
    std::optional<executable> step;
    {
      const auto owner = std::make_shared<const int>(1);
      held = owner;
      const graph made = capture(s(), [&](stream_ref c) {
        capture_window window = session.open_window(c);
        for (std::size_t i = 0; i < 3; ++i) {
          window.note(key(i), append(c, x, static_cast<std::int32_t>(i + 1)));
        }
        dev().api().keep(c.id(), owner);
      });
      step.emplace(made.instantiate(s()));
      session.bind(made, *step);
    }
    for (const switch_set& on : {works({0, 2}), works({}), works({1})}) {
      session.set(on);
      EXPECT_EQ(digits_of(s(), *step, x), digits_in(3, on));
    }
    session.clear();
    step.reset();
    s().synchronize();
    dev().api().close_finished();
    EXPECT_TRUE(held.expired()) << "the session keeps a template beyond its end";
  }
}

TEST_P(toggle_cases, X09_a_change_costs_what_the_next_launch_needs) {
  constexpr std::size_t graphs = 35;
  constexpr std::size_t nodes = 36;
  const auto x = number(nodes);
  toggle_session session{dev(), toggle_mode::host_lazy};
  std::vector<recorded> all;
  std::vector<executable> steps;
  for (std::size_t i = 0; i < graphs; ++i) {
    all.push_back(record(session, s(), x, nodes));
    steps.push_back(all.back().made.instantiate(s()));
    session.bind(all.back().made, steps.back());
  }
  session.set(all_but(nodes, {}));
  for (const executable& step : steps) step.launch(s());
  const calls_since change{*counts};
  session.set(all_but(nodes, {3, 4, 20, 35}));
  EXPECT_EQ(change.all(), 0U);
  steps[7].launch(s());
  EXPECT_EQ(change[seam_call::enable], 4U);
  steps[7].launch(s());
  EXPECT_EQ(change[seam_call::enable], 4U);
  EXPECT_EQ(change.all(), 6U);
  session.set(all_but(nodes, {}));
  steps[7].launch(s());
  const calls_since back{*counts};
  session.set(all_but(nodes, {1, 2}));
  session.set(all_but(nodes, {}));
  for (const executable& step : steps) step.launch(s());
  EXPECT_EQ(back[seam_call::enable], 0U) << "there and back";
}

TEST_P(toggle_cases, X11_a_launch_in_flight_keeps_its_set_and_nobody_waits_for_it) {
  for (const toggle_mode mode : {toggle_mode::host_lazy, toggle_mode::variants}) {
    SCOPED_TRACE(name_of(mode));
    const auto x = number();
    const auto y = number();
    const stream beside{dev()};
    toggle_session session{dev(), mode};
    const recorded of_e = record(session, s(), x, 3);
    const recorded of_f = record(session, s(), y, 3);
    const executable e = of_e.made.instantiate(s());
    const executable f = of_f.made.instantiate(s());
    session.bind(of_e.made, e);
    session.bind(of_f.made, f);
    session.set(works({0, 1}));
    for (const executable* one : {&e, &f}) one->launch(s());
    session.set(works({2}));  // its executables are made before something is held
    for (const executable* one : {&e, &f}) one->launch(s());
    fill(s(), write<std::int32_t>{x}, 0);
    fill(s(), write<std::int32_t>{y}, 0);
    s().synchronize();
    session.set(works({0, 1}));
    held_stream held{s()};
    e.launch(s());
    session.set(works({2}));
    e.launch(s());
    EXPECT_STILL_HELD(held);
    f.launch(beside);
    EXPECT_EQ(value_of(beside, y), 3);
    EXPECT_STILL_HELD(held);
    held.release();
    EXPECT_EQ(value_of(s(), x), 123);
  }
}

TEST_P(toggle_cases, X12_an_update_keeps_what_is_off_and_what_was_changed) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 4);
  executable step = of.made.instantiate(s());
  session.bind(of.made, step, twins::forbidden);
  session.set(all_but(4, {2}));
  EXPECT_EQ(digits_of(s(), step, x), 124);
  change(s(), step, of.nodes[3], append_digit, inout(x), 8);
  const graph other = capture(s(), [&](stream_ref c) {
    for (const std::int32_t digit : {5, 6, 7, 9}) append(c, x, digit);
  });
  ASSERT_TRUE(step.update(other));
  const calls_since now{*counts};
  EXPECT_EQ(digits_of(s(), step, x), 568) << "2 is off, 3 has its own argument";
  change(s(), step, of.nodes[2], append_digit, inout(x), 3);
  EXPECT_EQ(digits_of(s(), step, x), 568);
  EXPECT_EQ(now[seam_call::enable], 0U);
  session.set(all_but(4, {}));
  EXPECT_EQ(digits_of(s(), step, x), 5638) << "with what it was given while it was off";
  EXPECT_EQ(now[seam_call::enable], 1U);
}

TEST_P(toggle_cases, X14_what_switching_makes_slow_is_counted_said_and_repaired) {
  constexpr std::size_t nodes = 400;
  std::vector<std::string> lines;
  set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  const auto x = number(nodes);
  for (const twins others : {twins::allowed, twins::forbidden}) {
    lines.clear();
    toggle_session session{dev(), toggle_mode::host_lazy};
    const recorded of = record(session, s(), x, nodes);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step, others);
    const switch_set all = all_but(nodes, {});
    for (int i = 0; i < 10; ++i) {
      session.set(works({}));
      step.launch(s());
      session.set(all);
      step.launch(s());
    }
    EXPECT_EQ(session.counts().demoted_nodes, nodes);
    // 40 us a launch, until that is as much as 400 nodes take to instantiate: 2000 us.
    EXPECT_NEAR(session.counts().demotion_us, 20 * 40, 1e-6);
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_TRUE(has(lines[0], "400 nodes")) << lines[0];
    EXPECT_EQ(session.counts().repairs, 0U);
    const calls_since now{*counts};
    for (int i = 0; i < 40; ++i) step.launch(s());
    const std::uint64_t expected = others == twins::allowed ? 1 : 0;
    EXPECT_EQ(session.counts().repairs, expected);
    EXPECT_EQ(now[seam_call::instantiate], expected);
    EXPECT_EQ(now[seam_call::enable], 0U) << "all are on in a fresh one";
    fill(s(), write<std::int32_t>{x}, 0);
    session.set(all_but(nodes, {7}));
    step.launch(s());
    std::vector<std::int32_t> ran(nodes, 1);
    ran[7] = 0;
    EXPECT_EQ(read_back(s(), x), ran);
    session.clear();
    fill(s(), write<std::int32_t>{x}, 0);
    step.launch(s());
    EXPECT_EQ(read_back(s(), x), std::vector<std::int32_t>(nodes, 1));
  }
  set_log_sink({});
}

INSTANTIATE_TEST_SUITE_P(devices, toggle_cases, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
