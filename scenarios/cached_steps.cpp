// What a cache does with many steps: a small budget, versions that move, memory that is freed,
// breaks, results that are held, inputs that are read where they lie.
#include <algorithm>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

enum class cached_steps_slip {
  none,
  lease_used_without_on,
  break_does_not_join,
  moved_result_used_without_on,
  direct_input_overwritten,
};

numbers times_of(std::int32_t factor, numbers values) {
  for (std::int32_t& v : values) v *= factor;
  return values;
}

// A generator of its own, so that one seed of the device is one run.
class dice {
 public:
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 1664525U + 1013904223U;
    return (state_ >> 16) % limit;
  }

 private:
  std::uint32_t state_ = 2026;
};

// What the cache should hold: keys (a step and a length), the last used first.
class model_of_cache {
 public:
  using key = std::pair<std::size_t, std::size_t>;
  static constexpr std::size_t room = 3;

  bool use(const key& k) {
    const auto found = std::ranges::find(keys_, k);
    const bool hit = found != keys_.end();
    if (hit) keys_.erase(found);
    keys_.push_front(k);
    if (keys_.size() > room) {
      keys_.pop_back();
      ++evicted;
    }
    ++(hit ? replayed : captured);
    return hit;
  }
  std::size_t drop(std::size_t step) {
    const std::size_t gone = std::erase_if(keys_, [&](const key& k) { return k.first == step; });
    evicted += gone;
    return gone;
  }
  std::size_t size() const { return keys_.size(); }

  std::uint64_t captured = 0;
  std::uint64_t replayed = 0;
  std::uint64_t evicted = 0;

 private:
  std::list<key> keys_;
};

std::size_t bytes_of_one(desk& at) {
  scaling of{at, 2};
  replay_cache cache{at.dev};
  cache.run(at.s, *of.what, {of.x.from_host(numbers(few, 1))});
  return cache.budget().held();
}

// More than the budget of the scenario.
void run_one_that_does_not_fit(desk& at, replay_cache& cache) {
  signature declared{"large"};
  const step large{declared, [](step_scope& run) {
                     fill(run, write<std::int32_t>{run.scratch<std::int32_t>({200'000})}, 1);
                   }};
  require(cache.run(at.s, large, {}).why->rule == "budget", "what does not fit was recorded");
}

// Forty calls of two steps in three lengths; the budget is for three recordings.
template <cached_steps_slip made>
void cached_steps(device_ref dev) {
  desk at{dev};
  const stream reader{dev};
  byte_budget budget{model_of_cache::room * bytes_of_one(at)};
  replay_cache cache{dev, {.churn_limit = 1000, .budget = &budget}};
  scaling steps[] = {{at, 2}, {at, 3}};
  std::int32_t factors[] = {2, 3};
  numbers totals[] = {numbers(few, 0), numbers(few, 0)};
  model_of_cache model;
  std::vector<std::pair<number, numbers>> kept;
  dice thrown;
  run_one_that_does_not_fit(at, cache);
  for (std::int32_t i = 1; i <= 40; ++i) {
    const std::size_t which = thrown.below(2);
    const std::size_t length = few + thrown.below(3);
    scaling& of = steps[which];
    if (thrown.below(6) == 0) {
      // A reload: new memory, the old is freed, and another version.
      factors[which] = i;
      of.reload(at, at.s, i);
      const std::size_t gone = model.drop(which);
      require_equal(static_cast<std::int64_t>(cache.drop_stale()), static_cast<std::int64_t>(gone),
                    "recordings of the old weights");
    }
    const numbers in(length, i);
    const bool hit = model.use({which, length});
    const step_result done = cache.run(at.s, *of.what, {of.x.from_host(in)});
    require(done.how == (hit ? ran::replayed : ran::captured), "a call was not served as planned");
    require(budget.held() <= budget.limit(), "the budget was passed");
    for (std::int32_t& total : totals[which]) total += factors[which] * i;
    if (i % 4 != 0) continue;
    const lease<std::int32_t> result = done[of.y];
    number copied{at.memory, length, reader};
    copy(reader,
         read<std::int32_t>{made == cached_steps_slip::lease_used_without_on ? result.get()
                                                                             : result.on(reader)},
         write(copied));
    kept.emplace_back(std::move(copied), times_of(factors[which], in));
  }
  for (const auto& [copied, expected] : kept) {
    require_equal(values_of(reader, copied.all()), expected, "a result that was kept");
  }
  for (const std::size_t which : {0U, 1U}) {
    require_equal(values_of(at.s, steps[which].total.all()), totals[which], "a total");
  }
  require_counts(cache.counts(), model.captured, model.replayed, 1);
  require_equal(static_cast<std::int64_t>(cache.counts().evicted),
                static_cast<std::int64_t>(model.evicted), "evictions");
  require_equal(static_cast<std::int64_t>(cache.recordings()),
                static_cast<std::int64_t>(model.size()), "recordings");
  require(model.evicted > 5 && model.replayed > 5, "the mix is not one");
}

// A step with a break is recorded in its first run, which fails once behind the break.
template <cached_steps_slip made>
void broken_steps(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const stream side{dev};
  replay_cache cache{dev};
  scaling inner{at, 10};
  bool fails = true;
  scaling outer{at, 2, [&](step_scope& run, view<std::int32_t> y) {
                  run.eagerly("inner", [&, y](stream_ref on) {
                    order(on, side);
                    launch(side, append_digit, inout<std::int32_t>{y}, 1);
                    if (made != cached_steps_slip::break_does_not_join) order(side, on);
                    cache.run(on, *inner.what, {inner.x.from_host(numbers(few, 1))});
                  });
                  if (std::exchange(fails, false)) throw error{"behind the break"};
                  launch(run, append_digit, inout<std::int32_t>{y}, 2);
                }};
  // The warm-up ends at the break, so the first run is what fails; the eager run that follows is
  // the second.
  for (std::int32_t i = 1; i <= 6; ++i) {
    const stream_ref on = i % 2 == 0 ? stream_ref{other} : stream_ref{at.s};
    const step_result done = cache.run(on, *outer.what, {outer.x.from_host(numbers(few, i))});
    require(done.how == (i == 1   ? ran::eager
                         : i == 2 ? ran::captured
                                  : ran::replayed),
            "a step with a break ran in another way than planned");
    require_equal(values_of(on, done[outer.y].get()), numbers(few, 200 * i + 12), "a result");
  }
  order(other, at.s);
  require_equal(values_of(at.s, outer.total.all()), numbers(few, 2 * 21), "the outer total");
  require_equal(values_of(at.s, inner.total.all()), numbers(few, 10 * 7), "the inner total");
}

// One output is moved aside when a later run overwrites it, and two streams read it.
template <cached_steps_slip made>
void held_results(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  signature declared{"doubling"};
  const auto x = declared.in<std::int32_t>("x", {any});
  const auto y = declared.out<std::int32_t>("y", on_overwrite::move_aside);
  const number two = at.made(at.s, 2);
  const step what{declared, [&](step_scope& run) {
                    launch(run, times, read(run[x]), read(two), write(run.make(y, run.shape(x))));
                  }};
  replay_cache cache{dev};
  std::optional<lease<std::int32_t>> held;
  const number copied = at.made(other, 0, few);
  for (std::int32_t i = 1; i <= 6; ++i) {
    const step_result done = cache.run(at.s, what, {x.from_host(numbers(few, i))});
    if (held) {
      copy(other,
           read<std::int32_t>{made == cached_steps_slip::moved_result_used_without_on
                                  ? held->get()
                                  : held->on(other)},
           write(copied));
      require_equal(values_of(other, copied.all()), numbers(few, 2 * (i - 1)), "a held result");
      require_equal(values_of(at.s, held->get()), numbers(few, 2 * (i - 1)), "the same");
    }
    held.emplace(done[y]);
  }
  cache.sleep();
  require_equal(values_of(at.s, held->get()), numbers(few, 12), "a result of what sleeps");
  require_counts(cache.counts(), 1, 5, 0);
}

// Two inputs are declared direct; one has a reader that cannot follow, and is staged after all.
template <cached_steps_slip made>
void direct_inputs(device_ref dev) {
  desk at{dev};
  const stream writer{dev};
  signature declared{"direct"};
  const auto a = declared.in<std::int32_t>("a", {any}, input_mode::direct);
  const auto b = declared.in<std::int32_t>("b", {any}, input_mode::direct);
  const auto y = declared.out<std::int32_t>("y");
  const number three = at.made(at.s, 3);
  const step what{declared, [&](step_scope& run) {
                    const view<std::int32_t> out = run.make(y, run.shape(a));
                    launch(run, times, read(run[a]), read(three), write(out));
                    launch(run, add, read(run[b]), inout<std::int32_t>{out});
                  }};
  replay_cache cache{dev};
  const number second = at.made(at.s, 1, few);
  const number places[] = {at.made(at.s, 0, few), at.made(at.s, 0, few)};
  for (std::int32_t i = 1; i <= 6; ++i) {
    const number& in = places[i % 2];
    if (made != cached_steps_slip::direct_input_overwritten || i == 1) order(at.s, writer);
    fill(writer, write{in}, i);
    order(writer, at.s);
    const step_result done = cache.run(at.s, what, {a(in.all()), b(second.all())});
    require(done.how == (i == 1 ? ran::captured : ran::replayed), "another place was recorded");
    if (i != 6) continue;
    require_equal(values_of(at.s, done[y].get()), numbers(few, 3 * i + 1), "the last result");
  }
  require_equal(static_cast<std::int64_t>(cache.recordings()), 1, "recordings");
}

}  // namespace

std::vector<scenario> cached_step_scenarios() {
  return {
      {"cached_steps",
       "A cache under a small budget serves what a model of it says, whatever comes and goes.",
       cached_steps<cached_steps_slip::none>,
       {"cache: made room", "recorder: was not admitted", "freed memory: a recording was told",
        "lease: used on another stream", "lease: a run waited for a reader"},
       {{"lease_used_without_on",
         "A result is read on another stream, and nobody is told.",
         {"race", "use after free"},
         cached_steps<cached_steps_slip::lease_used_without_on>}}},
      {"broken_steps",
       "A step with a break fails in its first run, is recorded in the next, and replays.",
       broken_steps<cached_steps_slip::none>,
       {"recording: took a break", "first run: put state back"},
       {{"break_does_not_join",
         "A break leaves work on a stream that the run does not wait for.",
         {"thrown", "race"},
         broken_steps<cached_steps_slip::break_does_not_join>}}},
      {"held_results",
       "A result that is held when a later run comes is moved aside, and read on two streams.",
       held_results<cached_steps_slip::none>,
       {"lease: moved aside"},
       {{"moved_result_used_without_on",
         "A result that was moved aside is read on a stream that does not wait for the copy.",
         {"race", "unwritten read", "use after free"},
         held_results<cached_steps_slip::moved_result_used_without_on>}}},
      {"direct_inputs",
       "Inputs are read where they lie; one whose reader cannot follow is staged after all.",
       direct_inputs<cached_steps_slip::none>,
       {"recorder: staged a direct input after all"},
       {{"direct_input_overwritten",
         "The next input is written while a replay may still read it where it lies.",
         {"race"},
         direct_inputs<cached_steps_slip::direct_input_overwritten>}}},
  };
}

}  // namespace reprise::scenarios
