// Replays of recordings pass the same gate: one whose works nobody bound is stopped, and its cache
// goes on.
#include "reprise/replay/cache.hpp"
#include "tests/toggle/support.hpp"

namespace reprise::test {
namespace {

class recordings : public toggle_suite {};

TEST_P(recordings, that_nobody_bound_are_stopped_and_run_as_ever_when_the_session_is_over) {
  const auto x = number();
  toggle_session session{dev(), toggle_mode::host_lazy};
  const recorded of = record(session, s(), x, 2);
  const executable bound_one = of.made.instantiate(s());
  signature declared{"digits"};
  declared.overwrites("x", as_tensor(x.all()));
  const step what{declared, [&](step_scope& run) {
                    const stream_ref on = run;
                    fill(on, write<std::int32_t>{x}, 0);
                    if (!on.capturing()) {
                      append(on, x, 7);
                      return;
                    }
                    capture_window window = session.open_window(on);
                    window.note(key(0), append(on, x, 7));
                  }};
  replay_cache cache{dev()};
  cache.run(s(), what, {});
  cache.run(s(), what, {});
  EXPECT_EQ(value_of(s(), x), 7);
  session.bind(of.made, bound_one);
  for (int i = 0; i < 2; ++i) {
    const step_result stopped = cache.run(s(), what, {});
    EXPECT_EQ(stopped.how, ran::eager);
    EXPECT_EQ(stopped.why->rule, "launch refused");
    EXPECT_TRUE(has(stopped.why->text(), "is not bound")) << stopped.why->text();
  }
  session.clear();
  fill(s(), write<std::int32_t>{x}, 0);
  const step_result done = cache.run(s(), what, {});
  EXPECT_EQ(done.how, ran::replayed);
  EXPECT_EQ(value_of(s(), x), 7);
}

INSTANTIATE_TEST_SUITE_P(devices, recordings, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
