// Many replays in a row with inputs from the host, none waited for: each has a slot of its own
// until it has been read (rule 19).
#include <optional>

#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class queued_steps_slip { none, body_keeps_a_freed_buffer };

template <queued_steps_slip made>
void queued_inputs(device_ref dev) {
  constexpr std::int32_t rounds = 40;  // more than there are slots
  desk at{dev};
  std::optional<number> bias{at.made(at.s, 1)};
  const view<std::int32_t> bias_as_recorded = *bias;
  // The bias is no parameter, so no fact of the recording stands for its address.
  scaling scaled{at, 2, [&](step_scope& run, view<std::int32_t> y) {
                   launch(run, add, read<std::int32_t>{bias_as_recorded}, inout<std::int32_t>{y});
                 }};
  replay_cache cache{dev};
  std::optional<step_result> last;
  for (std::int32_t i = 1; i <= rounds; ++i) {
    numbers in(few, i);
    last = cache.run(at.s, *scaled.what, {scaled.x.from_host(in)});
    in.assign(few, -1);
    if (made == queued_steps_slip::body_keeps_a_freed_buffer && i == rounds / 2) bias.reset();
  }
  require_equal(values_of(at.s, (*last)[scaled.y].get()), numbers(few, 2 * rounds + 1),
                "the last result");
  require_equal(values_of(at.s, scaled.total.all()), numbers(few, rounds * (rounds + 1)),
                "the total");
  require_counts(cache.counts(), 1, rounds - 1, 0);
}

// The same with recording off: the eager runs stage their inputs in slots as well.
void eager_inputs(device_ref dev) {
  constexpr std::int32_t rounds = 40;
  desk at{dev};
  const stream other{dev};
  scaling scaled{at, 2};
  order(at.s, other);
  replay_cache cache{dev, {.record = false}};
  for (std::int32_t i = 1; i <= rounds; ++i) {
    numbers in(few, i);
    const stream_ref on = i % 3 == 0 ? other : at.s;
    const step_result done = cache.run(on, *scaled.what, {scaled.x.from_host(in)});
    require(done.how == ran::eager, "a step was recorded although recording is off");
    in.assign(few, -1);
  }
  cache.drain();
  require_equal(values_of(at.s, scaled.total.all()), numbers(few, rounds * (rounds + 1)),
                "the total");
  require_counts(cache.counts(), 0, 0, rounds);
}

}  // namespace

std::vector<scenario> queued_step_scenarios() {
  return {
      {"queued_inputs",
       "More replays are queued than there are slots for their inputs.",
       queued_inputs<queued_steps_slip::none>,
       {"slot ring: waited for a slot", "slot ring: waits for a slot that is free"},
       {{"body_keeps_a_freed_buffer",
         "A body refers to a buffer that is no parameter, and that goes before the recording.",
         {"use after free"},
         queued_inputs<queued_steps_slip::body_keeps_a_freed_buffer>}}},
      {"eager_inputs",
       "Eager steps on two streams stage their inputs without waiting for one another.",
       eager_inputs,
       {"staging: waited for a half", "staging: waits for a half that is free"},
       {}},
  };
}

}  // namespace reprise::scenarios
