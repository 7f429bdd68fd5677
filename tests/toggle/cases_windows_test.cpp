// Cases of the field about windows: X7 and X13, and what counts as an anomaly.
#include "reprise/toggle/window.hpp"

#include <stdexcept>

#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

class window_cases : public toggle_suite {
 protected:
  // The session takes a new recording, and a capture outside of it is none of its own.
  void expect_usable_session(toggle_session& session) {
    const auto x = number();
    const recorded of = record(session, s(), x, 3);
    const executable step = of.made.instantiate(s());
    session.bind(of.made, step);
    session.set(works({1}));
    EXPECT_EQ(digits_of(s(), step, x), 2);
    const graph outside = capture(s(), [&](stream_ref c) { append(c, x, 7); });
    EXPECT_EQ(digits_of(s(), outside.instantiate(s()), x), 7);
    session.clear();
  }
};

TEST_P(window_cases, X07_whatever_fails_in_a_capture_the_window_is_closed_without_a_trace) {
  // Begin and end are calls of the seam that fail; what the body throws at its n-th work, too.
  for (int failing = 0; failing < 6; ++failing) {
    SCOPED_TRACE(failing);
    failing_device on{GetParam()};
    const digits x = on.made();
    toggle_session session{on.opened, toggle_mode::host_lazy};
    int call = 0;
    const auto body = [&](stream_ref c) {
      capture_window window = session.open_window(c);
      for (std::size_t i = 0; i < 3; ++i) {
        if (++call == failing) throw std::runtime_error{"the model fails"};
        window.note(key(i), append(c, x, static_cast<std::int32_t>(i + 1)));
      }
    };
    if (failing == 0) on.plan->fail_call(seam_call::capture, 1);
    if (failing == 4) on.plan->fail_call(seam_call::kernel, 2);
    if (failing == 5) on.plan->fail_call(seam_call::capture, 2);
    EXPECT_ANY_THROW((void)capture(on.s, body));
    on.plan->fail_call(0);
    EXPECT_FALSE(session.active());
    const graph outside = capture(on.s, [&](stream_ref c) { append(c, x, 7); });
    const executable step = outside.instantiate(on.s);
    EXPECT_THROW(session.bind(outside, step), usage_error) << "it was not adopted";
    EXPECT_EQ(digits_of(on.s, step, x), 7);
    const recorded of = record(session, on.s, x, 3);
    const executable good = of.made.instantiate(on.s);
    session.bind(of.made, good);
    session.set(works({1}));
    EXPECT_EQ(digits_of(on.s, good, x), 2);
  }
}

TEST_P(window_cases, X07_a_body_that_goes_on_after_a_throw_has_no_trace_of_that_window) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const graph made = capture(s(), [&](stream_ref c) {
    try {
      capture_window window = session.open_window(c);
      window.note(key(5), append(c, x, 5));
      throw std::runtime_error{"a part of the model fails"};
    } catch (const std::runtime_error&) {
    }
    capture_window window = session.open_window(c);
    window.note(key(0), append(c, x, 1));
  });
  const executable step = made.instantiate(s());
  session.bind(made, step);
  EXPECT_EQ(session.keys(), works({0}));
  session.set(works({}));
  EXPECT_EQ(digits_of(s(), step, x), 5);
}

TEST_P(window_cases, X13_kinds_that_cannot_be_switched_are_refused_by_name_when_bound) {
  const auto x = number();
  const std::vector<std::pair<std::string, std::function<node_id(stream_ref)>>> kinds{
      {"host call", [](stream_ref c) { return host_call(c, "the count", {}, [] {}); }},
      {"empty", [](stream_ref c) { return empty(c, "the count"); }}};
  for (const auto& [name, work] : kinds) {
    SCOPED_TRACE(name);
    toggle_session session{dev()};
    const auto bind_it = [&, &launched = work] {
      const graph made = capture(s(), [&](stream_ref c) {
        capture_window window = session.open_window(c);
        window.note(key(0), append(c, x, 1));
        window.note(key(1), launched(c));
      });
      session.bind(made, made.instantiate(s()));
    };
    const std::string message = message_of<usage_error>(bind_it);
    EXPECT_TRUE(has(message, name)) << message;
    EXPECT_TRUE(has(message, "'the count'")) << message;
    EXPECT_FALSE(session.active());
    expect_usable_session(session);
  }
}

TEST_P(window_cases, anomalies_are_counted_and_activation_refuses_with_the_first) {
  const auto x = number();
  using body = std::function<void(capture_window&, stream_ref)>;
  const std::vector<std::pair<std::string, body>> kinds{
      {"no node", [&](capture_window& w, stream_ref) { w.note(key(1), node_id::none); }},
      {"without a key",
       [&](capture_window& w, stream_ref c) {
         w.note(std::span<const switch_key>{}, append(c, x, 2));
       }},
      {"under other keys", [&](capture_window& w, stream_ref c) {
         const node_id node = append(c, x, 2);
         w.note(key(1), node);
         w.note({key(1), key(2)}, node);
         w.note(key(1), node);  // the same again is none
       }}};
  for (const auto& [what, note] : kinds) {
    SCOPED_TRACE(what);
    toggle_session session{dev()};
    {
      const graph made = capture(s(), [&, &noted = note](stream_ref c) {
        capture_window window = session.open_window(c);
        window.note(key(0), append(c, x, 1));
        noted(window, c);
      });
      const executable step = made.instantiate(s());
      session.bind(made, step);
      EXPECT_EQ(session.counts().anomalies, 1U);
      const std::string message = message_of<usage_error>([&] { session.set(works({})); });
      EXPECT_TRUE(has(message, what)) << message;
      EXPECT_EQ(digits_of(s(), step, x) % 10, what == "no node" ? 1 : 2);
    }
    session.clear();
    expect_usable_session(session);
  }
}

TEST_P(window_cases, a_window_on_a_stream_that_is_not_captured_is_an_anomaly) {
  const auto x = number();
  toggle_session session{dev()};
  {
    capture_window window = session.open_window(s());
    window.note(key(0), append(s(), x, 1));
  }
  const recorded of = record(session, s(), x, 2);
  const executable step = of.made.instantiate(s());
  session.bind(of.made, step);
  EXPECT_TRUE(has(message_of<usage_error>([&] { session.set(works({})); }), "not being captured"));
  session.clear();
  expect_usable_session(session);
}

TEST_P(window_cases, a_note_after_the_end_of_its_capture_is_an_anomaly) {
  const auto x = number();
  toggle_session session{dev()};
  std::optional<capture_window> window;
  node_id node{};
  const graph made = capture(s(), [&](stream_ref c) {
    window.emplace(session.open_window(c));
    node = append(c, x, 1);
    window->note(key(0), node);
  });
  window->note(key(1), node);
  window.reset();
  EXPECT_EQ(session.counts().anomalies, 1U);
}

TEST_P(window_cases, several_windows_of_one_capture_are_one) {
  const auto x = number();
  toggle_session session{dev()};
  const graph made = capture(s(), [&](stream_ref c) {
    for (std::size_t i = 0; i < 3; ++i) {
      capture_window window = session.open_window(c);
      window.note(key(i), append(c, x, static_cast<std::int32_t>(i + 1)));
    }
  });
  const executable step = made.instantiate(s());
  session.bind(made, step);
  session.set(works({0, 2}));
  EXPECT_EQ(digits_of(s(), step, x), 13);
}

INSTANTIATE_TEST_SUITE_P(devices, window_cases, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
