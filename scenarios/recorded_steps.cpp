// Steps that are recorded once and replayed, on more than one stream: the recording is the unit of
// order (rule 15), inputs and results are the caller's to order.
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class recorded_steps_slip {
  none,
  one_input_for_two_streams,
  lease_read_elsewhere,
  state_read_elsewhere
};

// Eleven steps on two streams in turns, their inputs on the device.
template <recorded_steps_slip made>
void two_stream_steps(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  scaling scaled{at, 3};
  const number in_of_s = at.made(at.s, 0, few);
  const number in_of_other = at.made(at.s, 0, few);
  order(at.s, other);
  replay_cache cache{dev};
  std::optional<step_result> last;
  for (std::int32_t i = 1; i <= 10; ++i) {
    const bool here = i % 2 == 1;
    const stream_ref on = here ? stream_ref{at.s} : stream_ref{other};
    const number& in =
        here || made == recorded_steps_slip::one_input_for_two_streams ? in_of_s : in_of_other;
    fill(on, write{in}, i);
    last = cache.run(on, *scaled.what, {scaled.x(in.all())});
    const ran expected = i == 1 ? ran::captured : ran::replayed;
    require(last->how == expected, "a step was not captured first and replayed after");
  }
  if (made != recorded_steps_slip::state_read_elsewhere) order(other, at.s);
  const numbers total = values_of(at.s, scaled.total.all());
  order(at.s, other);
  last = cache.run(other, *scaled.what, {scaled.x(in_of_other.all())});
  const stream_ref result_on = made == recorded_steps_slip::lease_read_elsewhere ? at.s : other;
  const numbers result = values_of(result_on, (*last)[scaled.y].get());
  other.synchronize();
  require_equal(total, numbers(few, 3 * 55), "the total");
  require_equal(result, numbers(few, 30), "the last result");
  require_counts(cache.counts(), 1, 10, 0);
  require_equal(static_cast<std::int64_t>(cache.recordings()), 1, "recordings");
}

// Each shape is a recording of its own, and a result that was overwritten says so.
void shapes_and_leases(device_ref dev) {
  desk at{dev};
  signature declared{"doubling"};
  const auto x = declared.in<std::int32_t>("x", {any});
  const auto y = declared.out<std::int32_t>("y");
  const number two = at.made(at.s, 2);
  const step what{declared, [&](step_scope& run) {
                    launch(run, times, read(run[x]), read(two), write(run.make(y, run.shape(x))));
                  }};
  replay_cache cache{dev};
  pool kept{dev, "kept"};
  std::vector<number> results;
  for (std::int32_t round = 1; round <= 3; ++round) {
    for (const std::size_t count : {1U, 3U, 5U}) {
      const numbers in(count, round);
      const step_result done = cache.run(at.s, what, {x.from_host(in)});
      results.push_back(done[y].clone(at.s, kept));
      require(done[y].valid(), "a fresh lease is void");
    }
  }
  const numbers one{7};
  const step_result first = cache.run(at.s, what, {x.from_host(one)});
  const step_result second = cache.run(at.s, what, {x.from_host(one)});
  bool refused = false;
  try {
    (void)first[y].get();
  } catch (const stale_error&) {
    refused = true;
  }
  require(refused, "a result that was overwritten was handed out");
  require_equal(values_of(at.s, second[y].get()), {14}, "the newest result");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto round = static_cast<std::int32_t>(i / 3) + 1;
    require_equal(values_of(at.s, results[i].all()), numbers(results[i].size(), 2 * round),
                  "a result that was kept");
  }
  require_counts(cache.counts(), 3, 8, 0);
}

}  // namespace

std::vector<scenario> step_scenarios() {
  return {
      {"two_stream_steps",
       "A step is recorded once and replayed on two streams in turns.",
       two_stream_steps<recorded_steps_slip::none>,
       {"step: crossed streams"},
       {{"one_input_for_two_streams",
         "The next input is written on another stream while the replay before may still read it.",
         {"race"},
         two_stream_steps<recorded_steps_slip::one_input_for_two_streams>},
        {"lease_read_elsewhere",
         "A result is read on another stream than that of its run.",
         {"race"},
         two_stream_steps<recorded_steps_slip::lease_read_elsewhere>},
        {"state_read_elsewhere",
         "The state that a replay updates is read on another stream.",
         {"race"},
         two_stream_steps<recorded_steps_slip::state_read_elsewhere>}}},
      {"shapes_and_leases",
       "Each shape has a recording, and a stale result is refused.",
       shapes_and_leases,
       {"lease: gone stale"},
       {}},
  };
}

}  // namespace reprise::scenarios
