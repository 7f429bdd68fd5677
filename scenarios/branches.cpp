// Steps whose body forks: each branch has scratch and workspaces of its own (rule 20).
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class branches_slip { none, one_scratch_for_both, joined_too_late, scratch_never_written };

template <branches_slip made>
void branching_steps(device_ref dev) {
  desk at{dev};
  const stream side{dev};
  signature declared{"branching"};
  const auto x = declared.in<std::int32_t>("x", {any});
  const auto sums = declared.out<std::int32_t>("sums");
  const number three = at.made(at.s, 3);
  const number five = at.made(at.s, 5);
  at.s.synchronize();
  const step what{declared, [&](step_scope& run) {
                    const dims shape = run.shape(x);
                    const view<std::int32_t> out = run.make(sums, {2});
                    const view<std::int32_t> in_line = run.scratch<std::int32_t>(shape);
                    const view<std::int32_t> beside = made == branches_slip::one_scratch_for_both
                                                          ? in_line
                                                          : run.scratch<std::int32_t>(shape);
                    order(run, side);
                    {
                      const branch_scope branch = run.on(side);
                      if (made != branches_slip::scratch_never_written) {
                        launch(branch, times, read(run[x]), read(five), write(beside));
                      }
                      launch(branch, sum_up, read(beside), write<std::int32_t>{out.subview(1, 1)});
                    }
                    launch(run, times, read(run[x]), read(three), write(in_line));
                    launch(run, sum_up, read(in_line), write<std::int32_t>{out.subview(0, 1)});
                    if (made != branches_slip::joined_too_late) order(side, run);
                    launch(run, append_digit, inout<std::int32_t>{out}, 0);
                    if (made == branches_slip::joined_too_late) order(side, run);
                  }};
  replay_cache cache{dev};
  for (std::int32_t i = 1; i <= 6; ++i) {
    const numbers in(few, i);
    const step_result done = cache.run(at.s, what, {x.from_host(in)});
    const auto count = static_cast<std::int32_t>(few);
    if (i % 3 != 0) continue;
    require_equal(values_of(at.s, done[sums].get()), {10 * 3 * i * count, 10 * 5 * i * count},
                  "the sums of both branches");
  }
  require_counts(cache.counts(), 1, 5, 0);
}

}  // namespace

std::vector<scenario> branch_scenarios() {
  return {
      {"branching_steps",
       "A step forks to a second stream and joins it, eagerly, captured and replayed.",
       branching_steps<branches_slip::none>,
       {},
       {{"one_scratch_for_both",
         "Two branches of a step use the same scratch.",
         {"race"},
         branching_steps<branches_slip::one_scratch_for_both>},
        {"joined_too_late",
         "A step reads the result of a branch before it has joined it.",
         {"race", "unwritten read"},
         branching_steps<branches_slip::joined_too_late>},
        {"scratch_never_written",
         "A step reads scratch as if it held zeros.",
         {"unwritten read"},
         branching_steps<branches_slip::scratch_never_written>}}},
  };
}

}  // namespace reprise::scenarios
