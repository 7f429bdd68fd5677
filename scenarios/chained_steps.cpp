// Steps in a chain, each reading what the one before has made: replayed, and eagerly, where the
// second run may not use the memory that it reads.
#include <vector>

#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

// x goes through three steps, ten times; the last result is kept on a second stream.
void chain(desk& at, bool record) {
  replay_cache cache{at.dev, {.record = record}};
  scaling steps[] = {{at, 2}, {at, 3}, {at, 5}};
  for (std::int32_t i = 1; i <= 10; ++i) {
    const numbers x(few, i);
    step_result done = cache.run(at.s, *steps[0].what, {steps[0].x.from_host(x)});
    for (std::size_t k = 1; k < 3; ++k) {
      done = cache.run(at.s, *steps[k].what, {steps[k].x(done[steps[k - 1].y].get())});
    }
    require(values_of(at.s, done[steps[2].y].get()) == numbers(few, 30 * i),
            "a step read something else than the one before has made");
  }
  require_counts(cache.counts(), record ? 3 : 0, record ? 27 : 0, record ? 0 : 30);
}

void chained_steps(device_ref dev) {
  desk at{dev};
  chain(at, true);
  chain(at, false);
}

}  // namespace

std::vector<scenario> chained_step_scenarios() {
  return {
      {"chained_steps",
       "Steps that read what the step before has made give the same replayed and eagerly.",
       chained_steps,
       {"eager: ran beside its inputs"},
       {}},
  };
}

}  // namespace reprise::scenarios
