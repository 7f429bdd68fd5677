// A loop whose requests take turns: each gives what it gives alone, since what the loop knows of a
// request is in the request.
#include <array>

#include "reprise/loop/runner.hpp"
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class interleaved_loops_slip {
  none,
  state_in_the_loop,
  result_kept_as_a_lease,
  result_taken_elsewhere
};

// x <- factor x, `steps` times; the factor is another one at each step.
template <interleaved_loops_slip made>
class multiplying {
 public:
  static constexpr bool may_record = true;

  struct request {
    number x;
    std::int32_t factor;
    int steps;
    int done = 0;
    numbers factor_now{0};
    std::array<binding, 2> with;
    std::optional<lease<std::int32_t>> kept;
  };

  explicit multiplying(desk& at) : at_{at}, elsewhere_{at.dev} {}

  std::optional<step_call> next(request& r) {
    if (r.done == r.steps) return std::nullopt;
    r.factor_now = {r.factor + r.done};
    const bool from_lease = made == interleaved_loops_slip::result_kept_as_a_lease && r.kept;
    r.with = {from_lease ? x_(r.kept->get()) : x_(state_of(r).all()),
              factor_.from_host(r.factor_now)};
    return step_call{&what_, r.with};
  }

  void advance(request& r, const step_result& done) {
    const bool here = made != interleaved_loops_slip::result_taken_elsewhere;
    copy(here ? at_.s : elsewhere_, read<std::int32_t>{done[y_].get()}, write(state_of(r)));
    r.kept = done[y_];
    ++r.done;
  }

 private:
  number& state_of(request& r) {
    if (made != interleaved_loops_slip::state_in_the_loop) return r.x;
    if (!shared_) shared_ = at_.made(at_.s, 1, r.x.size());
    return *shared_;
  }

  desk& at_;
  stream elsewhere_;
  std::optional<number> shared_;
  signature declared_{"multiplying"};
  const input<std::int32_t> x_ = declared_.in<std::int32_t>("x", {any});
  const input<std::int32_t> factor_ = declared_.in<std::int32_t>("factor", {1});
  const output<std::int32_t> y_ = declared_.out<std::int32_t>("y");
  const step what_{declared_, [this](step_scope& run) {
                     launch(run, times, read(run[x_]), read(run[factor_]),
                            write(run.make(y_, run.shape(x_))));
                   }};
};

// Four requests of two shapes; the last is cancelled behind its second step.
template <interleaved_loops_slip made>
void interleaved_loops(device_ref dev) {
  using loop = multiplying<made>;
  desk at{dev};
  loop of{at};
  std::vector<typename loop::request> requests;
  const auto ask = [&](std::int32_t x, std::size_t count, std::int32_t factor, int steps) {
    requests.push_back({.x = at.made(at.s, x, count),
                        .factor = factor,
                        .steps = steps,
                        .factor_now = {0},
                        .with = {},
                        .kept = {}});
  };
  ask(1, few, 2, 4);
  ask(2, 3, 3, 2);
  ask(3, few, 5, 3);
  ask(5, 3, 7, 6);
  replay_cache cache{dev};
  loop_runner runner{cache};
  runner.run(at.s, of, std::span{requests},
             [&](std::size_t i) { return i == 3 && requests[i].done == 2; });
  require_equal(values_of(at.s, requests[0].x.all()), numbers(few, 2 * 3 * 4 * 5), "request 0");
  require_equal(values_of(at.s, requests[1].x.all()), numbers(3, 2 * 3 * 4), "request 1");
  require_equal(values_of(at.s, requests[2].x.all()), numbers(few, 3 * 5 * 6 * 7), "request 2");
  require_equal(values_of(at.s, requests[3].x.all()), numbers(3, 5 * 7 * 8), "request 3");
  require_counts(cache.counts(), 2, 9, 0);
}

}  // namespace

std::vector<scenario> interleaved_loop_scenarios() {
  return {
      {"interleaved_loops",
       "Requests of a loop take turns, and each gives what it gives alone.",
       interleaved_loops<interleaved_loops_slip::none>,
       {},
       {{"state_in_the_loop",
         "The loop keeps one state, and not one for each request.",
         {"thrown"},
         interleaved_loops<interleaved_loops_slip::state_in_the_loop>},
        {"result_kept_as_a_lease",
         "A request keeps the lease on its result over the steps of others.",
         {"thrown"},
         interleaved_loops<interleaved_loops_slip::result_kept_as_a_lease>},
        {"result_taken_elsewhere",
         "A request takes its result on another stream than that of its steps.",
         {"race", "use after free"},
         interleaved_loops<interleaved_loops_slip::result_taken_elsewhere>}}},
  };
}

}  // namespace reprise::scenarios
