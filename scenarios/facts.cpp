// What a recording was made under changes: the step runs eagerly, then is recorded anew.
#include <memory>

#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class facts_slip { none, weights_overwritten_in_flight };

class counting_observer : public mark_observer {
 public:
  void on_mark(step_scope&, point, const tensor_ref&) override { ++seen; }
  int seen = 0;
};

// Weights are reloaded elsewhere, then overwritten in place; an observer comes and goes.
template <facts_slip made>
void changed_facts(device_ref dev) {
  desk at{dev};
  const stream loader{dev};
  scaling scaled{at, 2, [](step_scope& run, view<std::int32_t> y) {
                   run.mark({"scaled", 0}, as_tensor(y));
                 }};
  replay_cache cache{dev};
  const auto run = [&](std::int32_t value, ran how) {
    const numbers in(few, value);
    const step_result done = cache.run(at.s, *scaled.what, {scaled.x.from_host(in)});
    require(done.how == how, "a step ran in another way than planned");
  };
  run(1, ran::captured);
  run(2, ran::replayed);
  scaled.reload(at, at.s, 5);
  run(3, ran::eager);
  run(4, ran::captured);
  run(5, ran::replayed);

  const auto observer = std::make_shared<counting_observer>();
  cache.observe(observer);
  run(6, ran::eager);
  cache.stop_observing();
  run(7, ran::replayed);
  require_equal(observer->seen, 1, "marks that were seen");

  // The same address and version, other values: the replays before must have read the old ones.
  if (made != facts_slip::weights_overwritten_in_flight) order(at.s, loader);
  fill(loader, write{scaled.factor}, 7);
  order(loader, at.s);
  run(8, ran::replayed);
  require_equal(values_of(at.s, scaled.total.all()), numbers(few, 2 * 3 + 5 * 25 + 7 * 8),
                "the total");
  require_counts(cache.counts(), 2, 4, 2);
  require_equal(static_cast<std::int64_t>(cache.counts().eager_reasons.at("fact changed")), 1,
                "steps that ran eagerly for a changed fact");
}

}  // namespace

std::vector<scenario> fact_scenarios() {
  return {
      {"changed_facts",
       "Weights move and change and an observer comes and goes; each step uses what is there.",
       changed_facts<facts_slip::none>,
       {"contract: breached"},
       {{"weights_overwritten_in_flight",
         "New weights are written while a replay may still read the old ones.",
         {"race"},
         changed_facts<facts_slip::weights_overwritten_in_flight>}}},
  };
}

}  // namespace reprise::scenarios
