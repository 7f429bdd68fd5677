// Modes: variants under a budget, words that kernels switch by, and X6, that none survives a clear.
#include <functional>

#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

class mode_cases : public toggle_suite {};

constexpr toggle_mode modes[] = {toggle_mode::automatic, toggle_mode::variants,
                                 toggle_mode::host_lazy, toggle_mode::host_eager,
                                 toggle_mode::device};

// The calls of one session from its first window to its clear, kind by kind and step by step.
std::vector<std::uint64_t> log_of(toggle_mode mode, stream_ref s, const digits& x,
                                  const call_counts& counts) {
  std::vector<std::uint64_t> log;
  fill(s, write<std::int32_t>{x}, 0);
  toggle_session session{s.device(), mode};
  const auto note = [&](const std::function<void()>& does) {
    const calls_since now{counts};
    does();
    s.synchronize();
    for (const seam_call call :
         {seam_call::copy, seam_call::event_record, seam_call::event_wait, seam_call::query,
          seam_call::capture, seam_call::clone, seam_call::instantiate, seam_call::launch,
          seam_call::enable, seam_call::synchronize}) {
      log.push_back(now[call]);
    }
  };
  std::optional<recorded> of;
  std::optional<executable> step;
  std::optional<fixed_executable> driven;
  note([&] {
    if (mode == toggle_mode::device) {
      driven.emplace(record_driven(session, s, x, 4, 4));
      session.bind(*driven);
    } else {
      of.emplace(record(session, s, x, 4));
      step.emplace(of->made.instantiate(s));
      session.bind(of->made, *step);
    }
  });
  for (const switch_set& on : {works({0, 2}), works({}), works({0, 2}), all_but(4, {})}) {
    note([&] { session.set(on); });
    note([&] { step ? step->launch(s) : driven->launch(s); });
  }
  session.set(works({3}));
  note([&] { step ? step->launch(s) : driven->launch(s); });
  note([&] { session.clear(); });
  EXPECT_EQ(step ? digits_of(s, *step, x) : digits_of(s, *driven, x), 1234);
  return log;
}

TEST_P(mode_cases, X06_no_mode_survives_the_clear_of_its_session) {
  const auto x = number();
  for (const toggle_mode second : modes) {
    const auto fresh_counts = std::make_shared<call_counts>();
    const device fresh =
        open_device(GetParam(), {.threads = 2, .counts = fresh_counts}, conformance_kernels());
    const stream fresh_stream{fresh};
    pool fresh_memory{fresh};
    const digits fresh_x{fresh_memory, 1, fresh_stream};
    const auto expected = log_of(second, fresh_stream, fresh_x, *fresh_counts);
    for (const toggle_mode first : modes) {
      SCOPED_TRACE(std::string{name_of(first)} + ", then " + std::string{name_of(second)});
      (void)log_of(first, s(), x, *counts);
      EXPECT_EQ(log_of(second, s(), x, *counts), expected);
    }
  }
}

TEST_P(mode_cases, X06_one_session_object_starts_clean_after_its_clear) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const auto once = [&] {
    const recorded of = record(session, s(), x, 4);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    EXPECT_EQ(digits_of(s(), step, x), 1234);
    session.set(works({1}));
    EXPECT_EQ(digits_of(s(), step, x), 2);
    session.clear();
    EXPECT_TRUE(session.keys().empty());
    EXPECT_EQ(digits_of(s(), step, x), 1234);
  };
  once();
  once();
}

TEST_P(mode_cases, variants_are_made_once_and_cost_nothing_then) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::variants};
  const recorded of = record(session, s(), x, 4);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  const calls_since now{*counts};
  for (int round = 0; round < 3; ++round) {
    for (const switch_set& on : {works({}), works({1, 3}), all_but(4, {})}) {
      session.set(on);
      EXPECT_EQ(digits_of(s(), step, x), digits_in(4, on));
    }
  }
  EXPECT_EQ(now[seam_call::instantiate], 2U) << "all on is the executable itself";
  EXPECT_EQ(now[seam_call::enable], 0U);
  EXPECT_EQ(session.counts().variants_made, 2U);
  const calls_since later{*counts};
  session.set(works({}));
  step.launch(s());
  session.set(works({1, 3}));
  step.launch(s());
  EXPECT_EQ(later.all(), 2U) << "two launches";
}

TEST_P(mode_cases, variants_share_a_budget_and_the_least_used_goes) {
  const auto x = number();
  const std::size_t each = dev().api().bytes_per_node(std::source_location::current());
  // Two variants of three nodes: a third does not fit.
  toggle_session session{dev(), {.mode = toggle_mode::variants, .variant_bytes = 6 * each}};
  const recorded of = record(session, s(), x, 4);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  const auto launch_with = [&](std::size_t off) {
    session.set(all_but(4, {off}));
    EXPECT_EQ(digits_of(s(), step, x), digits_in(4, all_but(4, {off})));
  };
  launch_with(0);
  launch_with(1);
  launch_with(0);
  EXPECT_EQ(session.counts().variants_dropped, 0U);
  EXPECT_EQ(session.counts().variant_bytes, 6 * each);
  launch_with(2);  // 1 goes
  EXPECT_EQ(session.counts().variants_dropped, 1U);
  EXPECT_EQ(session.counts().variant_bytes, 6 * each);
  const calls_since now{*counts};
  launch_with(0);
  EXPECT_EQ(now[seam_call::instantiate], 0U);
  launch_with(1);
  EXPECT_EQ(now[seam_call::instantiate], 1U);
}

TEST_P(mode_cases, the_variant_in_use_is_never_dropped) {
  const auto x = number();
  const auto y = number();
  toggle_session session{dev(), {.mode = toggle_mode::variants, .variant_bytes = 1}};
  const recorded a = record(session, s(), x, 3);
  const recorded b = record(session, s(), y, 3);
  const executable run_a = a.made.instantiate(s());
  const executable run_b = b.made.instantiate(s());
  session.bind(a.made, run_a);
  session.bind(b.made, run_b);
  session.set(works({1}));
  const calls_since now{*counts};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(digits_of(s(), run_a, x), 2);
    EXPECT_EQ(digits_of(s(), run_b, y), 2);
  }
  EXPECT_EQ(now[seam_call::instantiate], 2U);
}

TEST_P(mode_cases, a_twin_runs_behind_the_launch_before_whatever_their_streams) {
  const auto x = number();
  const stream beside{dev()};
  toggle_session session{dev(), toggle_mode::variants};
  const recorded of = record(session, s(), x, 3);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({2}));
  step.launch(s());
  fill(s(), write<std::int32_t>{x}, 0);
  s().synchronize();
  session.set(all_but(3, {}));
  held_stream held{s()};
  step.launch(s());
  session.set(works({2}));
  step.launch(beside);
  held.release();
  EXPECT_EQ(value_of(beside, x), 1233);
  EXPECT_EQ(session.counts().waits, 1U);
}

TEST_P(mode_cases, twins_are_not_made_where_they_are_forbidden) {
  const auto x = number();
  toggle_session session{dev()};
  const recorded of = record(session, s(), x, 3);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step, twins::forbidden);
  const calls_since now{*counts};
  session.set(works({}));
  EXPECT_EQ(digits_of(s(), step, x), 0);
  EXPECT_EQ(now[seam_call::instantiate], 0U);
  EXPECT_EQ(session.counts().chosen, toggle_mode::host_lazy);
  toggle_session variants{dev(), toggle_mode::variants};
  const recorded other = record(variants, s(), x, 3);
  const executable run = other.made.instantiate(s());
  EXPECT_TRUE(
      has(message_of<usage_error>([&] { variants.bind(other.made, run, twins::forbidden); }),
          "host_lazy"));
}

TEST_P(mode_cases, automatic_says_which_way_it_went_and_why) {
  const auto x = number();
  toggle_session session{dev()};
  const recorded of = record(session, s(), x, 4);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({0, 1}));
  step.launch(s());
  EXPECT_EQ(session.counts().chosen, toggle_mode::host_lazy);
  EXPECT_TRUE(has(session.counts().why, "2 of 4 nodes change")) << session.counts().why;
  session.set(works({}));
  EXPECT_EQ(digits_of(s(), step, x), 0);
  EXPECT_EQ(session.counts().chosen, toggle_mode::variants);
  EXPECT_TRUE(has(session.counts().why, "none is on")) << session.counts().why;
  EXPECT_EQ(session.counts().nodes_off, 4U);
  EXPECT_EQ(session.counts().nodes_on, 0U);
}

TEST_P(mode_cases, in_mode_device_a_changed_set_is_one_copy) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::device};
  const fixed_executable step = record_driven(session, s(), x, 4, 6);
  session.bind(step);
  EXPECT_EQ(digits_of(s(), step, x), 1234);
  const calls_since now{*counts};
  session.set(works({0, 2}));
  EXPECT_EQ(now.all(), 0U);
  fill(s(), write<std::int32_t>{x}, 0);
  step.launch(s());
  EXPECT_EQ(now[seam_call::copy], 1U);
  step.launch(s());
  session.set(works({2, 0}));
  step.launch(s());
  EXPECT_EQ(now[seam_call::copy], 1U) << "none when nothing changed";
  EXPECT_EQ(now[seam_call::enable], 0U);
  EXPECT_EQ(value_of(s(), x), 131313);
  session.set(works({}));
  session.set(works({0, 2}));
  step.launch(s());
  EXPECT_EQ(now[seam_call::copy], 2U) << "the test's own: there and back is no copy";
  session.set(works({}));
  EXPECT_EQ(digits_of(s(), step, x), 0);
  session.clear();
  EXPECT_EQ(digits_of(s(), step, x), 1234);
}

TEST_P(mode_cases, in_mode_device_the_words_are_there_from_the_binding_on) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::device};
  const fixed_executable step = record_driven(session, s(), x, 3, 4);
  session.bind(step);
  session.clear();
  EXPECT_EQ(digits_of(s(), step, x), 123) << "never launched in the session";
}

TEST_P(mode_cases, in_mode_device_words_are_not_written_under_a_launch_in_flight) {
  const auto x = number();
  const stream beside{dev()};
  toggle_session session{dev(), toggle_mode::device};
  const fixed_executable step = record_driven(session, s(), x, 3, 3);
  session.bind(step);
  session.set(works({0}));
  EXPECT_EQ(digits_of(s(), step, x), 1);
  fill(s(), write<std::int32_t>{x}, 0);
  s().synchronize();
  held_stream held{s()};
  step.launch(s());
  session.set(works({1, 2}));
  step.launch(beside);
  held.release();
  EXPECT_EQ(value_of(beside, x), 123);
}

TEST_P(mode_cases, device_driven_and_host_driven_are_refused_in_the_others_mode) {
  const auto x = number();
  toggle_session by_device{dev(), toggle_mode::device};
  toggle_session by_host{dev(), toggle_mode::host_lazy};
  const fixed_executable driven = record_driven(by_device, s(), x, 2, 2);
  EXPECT_TRUE(has(message_of<usage_error>([&] { by_host.bind(driven); }), "mode device"));
  const recorded of = record(by_device, s(), x, 2);
  const executable step = of.made.instantiate(s());
  EXPECT_TRUE(has(message_of<usage_error>([&] { by_device.bind(of.made, step); }), "mode device"));
  EXPECT_THROW((void)capture(s(),
                             [&](stream_ref c) {
                               capture_window window = by_host.open_window(c);
                               (void)window.words_for_planner(2);
                             }),
               usage_error);
  const fixed_executable short_of_words = record_driven(by_device, s(), x, 3, 2);
  EXPECT_TRUE(has(message_of<usage_error>([&] { by_device.bind(short_of_words); }), "3 works"));
}

TEST_P(mode_cases, a_rebound_handle_starts_anew) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 3);
  executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  session.set(works({1}));
  EXPECT_EQ(digits_of(s(), step, x), 2);
  // Somebody else's executable under the same handle, in which all is on.
  for (const node_id node : of.nodes) step.enable(node, true);
  session.rebind(of.made, step);
  const calls_since now{*counts};
  EXPECT_EQ(digits_of(s(), step, x), 2);
  EXPECT_EQ(now[seam_call::enable], 2U);
}

INSTANTIATE_TEST_SUITE_P(devices, mode_cases, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
