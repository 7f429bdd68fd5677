#include "bench/toggle/switching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "reprise/base/clock.hpp"

namespace reprise::bench {

namespace {

constexpr int switching_warm_ups = 3;        // looked at, and not measured
constexpr std::uint64_t replays_ahead = 8;   // that are in flight when a set is changed
constexpr std::uint64_t sets_of_bench = 24;  // what random sets are drawn from

std::vector<double> differences_of(const std::vector<double>& us, const std::vector<double>& less) {
  std::vector<double> all;
  for (std::size_t i = 0; i < us.size(); ++i) all.push_back(us[i] - less[i]);
  return all;
}

layer_set random_set(std::mt19937_64& thrown, std::size_t points) {
  std::vector<bool> on(points);
  for (std::size_t i = 0; i < points; ++i) on[i] = thrown() % 2 == 0;
  on[thrown() % points] = true;  // one with nothing on would be another recording
  return layer_set{std::move(on)};
}

layer_set all_of(std::size_t points) {
  return layer_set{std::vector<bool>(points, true)};
}

// Half of the points, from `first` on and around the end.
layer_set half_from(std::size_t first, std::size_t points) {
  std::vector<bool> on(points);
  for (std::size_t i = 0; i < points / 2; ++i) on[(first + i) % points] = true;
  return layer_set{std::move(on)};
}

std::uint64_t changed_between(const layer_set& one, const layer_set& other) {
  std::uint64_t changed = 0;
  for (std::size_t i = 0; i < one.on.size(); ++i) changed += one.on[i] != other.on[i] ? 1 : 0;
  return changed;
}

}  // namespace

switching_bench::switching_bench(pool& memory, stream_ref stream, void* native_stream,
                                 const layer_weights& weights, const switching_options& options,
                                 const progress& tell, toggle_figures& into)
    : stream_{stream},
      timer_{stream, native_stream},
      options_{options},
      tell_{tell},
      into_{into},
      judged_{stream.device().bodies() == device_kind::cuda},
      step_{memory, stream, weights, options.shape},
      lead_{"bare, ahead", stream, step_.marked()} {
  for (int i = 0; i < switching_warm_ups; ++i) lead_.check();
  lead_.begin_measuring();
}

void switching_bench::say(const char* what, int done, int of) const {
  if (done % 20 == 0) {
    tell_(fmt::format("{}, {} points", what, points()), static_cast<std::size_t>(done),
          static_cast<std::size_t>(of));
  }
}

switched_run switching_bench::run_of(const char* what, toggle_mode mode) const {
  return {fmt::format("{}, {} points", what, points()),
          stream_,
          step_,
          options_.shape.layers,
          options_.shape.residual_bytes,
          mode};
}

void switching_bench::warm_up(switched_run& one) const {
  for (int i = 0; i < switching_warm_ups; ++i) one.check();
  one.begin_measuring();
}

// Two steps ahead of it hide what the host does.
double switching_bench::device_us(const std::function<void()>& call) {
  stream_.synchronize();
  lead_.call();
  lead_.call();
  timer_.start();
  call();
  return timer_.stop();
}

switching_bench::timed switching_bench::device_us_of(const std::function<timed()>& call) {
  timed host_us;
  const double us = device_us([&] { host_us = call(); });
  return host_us ? timed{us} : std::nullopt;
}

double switching_bench::bare_host_us(watched_run& bare) {
  stream_.synchronize();
  const double began = now_us();
  bare.call();
  return now_us() - began;
}

toggle_figure& switching_bench::add(std::string what, std::string floor, const times& us,
                                    const times& floor_us, std::optional<double> limit) {
  toggle_figure made;
  made.of = {
      std::move(what), std::move(floor), spread_of(us), spread_of(floor_us), limit, judged_, {}};
  made.points = points();
  if (us.size() == floor_us.size()) {
    made.adds = median_interval_of(differences_of(us, floor_us));
    made.of.paired_us = made.adds->median;
  }
  into_.figures.push_back(std::move(made));
  return into_.figures.back();
}

void switching_bench::paired_times::add(timed one, timed floor) {
  if (!one || !floor) {
    ++left_out;
    return;
  }
  us.push_back(*one);
  floor_us.push_back(*floor);
}

toggle_figure& switching_bench::add(std::string what, std::string floor, const paired_times& both,
                                    double limit) {
  toggle_figure& made = add(std::move(what), std::move(floor), both.us, both.floor_us, limit);
  made.left_out = both.left_out;
  return made;
}

void switching_bench::idle() {
  const auto points_of_step = points();
  monitor_options how;
  how.ring_bytes = how.staging_bytes = 4 * points_of_step * options_.shape.residual_bytes;
  how.slots = 4 * points_of_step;
  how.flights = 4;
  how.most_points = points_of_step;
  watched_run none{fmt::format("none on, {} points", points_of_step), stream_, step_.marked(), how};
  watched_run bare{fmt::format("bare, {} points", points_of_step), stream_, step_.marked()};
  for (watched_run* const one : {&none, &bare}) {
    for (int i = 0; i < switching_warm_ups; ++i) one->check();
  }
  none.turn_off();
  none.check();
  none.begin_measuring();
  bare.begin_measuring();
  times none_us, bare_us;
  for (int i = 0; i < options_.pairs; ++i) {
    say("idle", i, options_.pairs);
    const auto measure = [&](watched_run& one, times& into) {
      into.push_back(device_us([&] { one.call(); }));
    };
    if (i % 2 == 0) measure(bare, bare_us);
    measure(none, none_us);
    if (i % 2 != 0) measure(bare, bare_us);
  }
  none.check();
  add("idle: no point on", "nobody watches", none_us, bare_us, idle_limit_us);
  into_.watched.push_back(none.finish());
  into_.watched.push_back(bare.finish());
}

void switching_bench::switching() {
  by_device();
  by_host();
  by_variants();
  unchanged();
  switched_often();
}

void switching_bench::finish() {
  stream_.synchronize();
  into_.watched.push_back(lead_.finish());
}

// The host's way is called twice: what is compared is the set at work, not the change.
void switching_bench::by_device() {
  switched_run device = run_of("device", toggle_mode::device);
  switched_run host = run_of("host_lazy, as device", toggle_mode::host_lazy);
  warm_up(device);
  warm_up(host);
  std::mt19937_64 thrown{points()};
  paired_times both;
  for (int i = 0; i < options_.repeats; ++i) {
    say("device", i, options_.repeats);
    const layer_set set = random_set(thrown, points());
    host.enable(set);
    host.call();
    timed by_graph_us, applied_us;
    const auto by_graph = [&] {
      by_graph_us = device_us_of([&] { return device.timed_change(set, 0); });
      device.settle();
    };
    const auto applied = [&] {
      applied_us = device_us_of([&] { return host.timed_call(0); });
      host.settle();
    };
    if (i % 2 == 0) by_graph();
    applied();
    if (i % 2 != 0) by_graph();
    both.add(by_graph_us, applied_us);
  }
  device.check();
  host.check();
  add("device: another random set at each step", "the same set, applied by the host before", both,
      driven_limit_us);
  into_.switched.push_back(device.finish());
  into_.switched.push_back(host.finish());
}

// Half of the points is on, and moves by an eighth: as many are switched on as off.
void switching_bench::by_host() {
  switched_run host = run_of("host_lazy", toggle_mode::host_lazy);
  warm_up(host);
  const std::size_t by = std::max<std::size_t>(1, points() / 16);
  layer_set set = half_from(0, points());
  host.enable(set);
  host.check();
  std::uint64_t nodes = 0;
  paired_times both;
  for (int i = 0; i < options_.repeats; ++i) {
    say("host_lazy", i, options_.repeats);
    layer_set next = half_from(static_cast<std::size_t>(i + 1) * by % points(), points());
    nodes = changed_between(set, next);
    set = std::move(next);
    stream_.synchronize();
    const timed changed_us = host.timed_change(set, nodes);
    host.settle();
    stream_.synchronize();
    both.add(changed_us, host.timed_change(set, 0));
    host.settle();
  }
  toggle_figure& made =
      add(fmt::format("host_lazy: {} nodes changed", nodes), "the same set again", both,
          changed_node_limit_us * static_cast<double>(nodes) + changed_set_limit_us);
  made.changed_nodes = nodes;
  in_flight(host);
  host.check();
  into_.switched.push_back(host.finish());
}

void switching_bench::in_flight(switched_run& host) {
  in_flight_figure made;
  made.what = fmt::format("host_lazy: a change behind {} replays in flight", replays_ahead);
  made.points = points();
  made.replays = replays_ahead;
  made.is_judged = judged_;
  const layer_set sets[] = {half_from(0, points()), half_from(points() / 4, points())};
  host.enable(sets[1]);
  host.call();
  paired_times both;  // the call, and until all was done
  for (int i = 0; i < options_.repeats; ++i) {
    say("host_lazy, in flight", i, options_.repeats);
    host.settle();
    for (std::uint64_t j = 0; j < replays_ahead; ++j) host.call();
    const double began = now_us();
    const layer_set& other = sets[i % 2];
    const timed call_us = host.timed_change(other, changed_between(sets[0], sets[1]));
    stream_.synchronize();
    both.add(call_us, now_us() - began);
  }
  host.settle();
  made.call_us = spread_of(both.us);
  made.flight_us = spread_of(both.floor_us);
  made.left_out = both.left_out;
  into_.in_flight.push_back(std::move(made));
}

void switching_bench::by_variants() {
  switched_run run = run_of("variants", toggle_mode::variants);
  warm_up(run);
  const layer_set sets[] = {half_from(0, points()), half_from(points() / 2, points())};
  for (int i = 0; i < 2 * switching_warm_ups; ++i) {
    run.enable(sets[i % 2]);
    run.check();
  }
  paired_times both;
  for (int i = 0; i < options_.pairs; ++i) {
    say("variants", i, options_.pairs);
    timed changed_us, same_us;
    for (timed* const into : {&changed_us, &same_us}) {
      stream_.synchronize();
      *into = run.timed_change(sets[i % 2], 0);
      run.settle();
    }
    both.add(changed_us, same_us);
  }
  run.check();
  add("variants: a set that was there before", "the same set again", both, recurring_limit_us);
  into_.switched.push_back(run.finish());
}

// What is left of switching when nothing changes: a session that is asked ahead of each launch on
// the device, those of others too; and of the monitor's own the set that it compares.
void switching_bench::unchanged() {
  watched_run bare{fmt::format("bare, unchanged, {} points", points()), stream_, step_.marked()};
  for (int i = 0; i < switching_warm_ups; ++i) bare.check();
  bare.begin_measuring();
  times alone;
  for (int i = 0; i < options_.pairs; ++i) alone.push_back(bare_host_us(bare));
  switched_run switched = run_of("host_lazy, unchanged", toggle_mode::host_lazy);
  switched_run never = run_of("host_lazy, never switched", toggle_mode::host_lazy);
  warm_up(switched);
  warm_up(never);
  switched.enable(half_from(0, points()));
  switched.check();
  switched.enable(all_of(points()));
  switched.check();
  times beside;
  paired_times both;
  for (int i = 0; i < options_.pairs; ++i) {
    say("unchanged", i, options_.pairs);
    beside.push_back(bare_host_us(bare));
    timed same_us, fresh_us;
    const auto measure = [&](switched_run& one, timed& into) {
      stream_.synchronize();
      into = one.timed_call(0);
      one.settle();
    };
    if (i % 2 == 0) measure(never, fresh_us);
    measure(switched, same_us);
    if (i % 2 != 0) measure(never, fresh_us);
    both.add(same_us, fresh_us);
  }
  switched.check();
  never.check();
  toggle_figure& of_others = add("unchanged: a replay that nobody watches, while others are",
                                 "before anything was watched", beside, alone, unchanged_limit_us);
  of_others.adds.reset();  // they are no neighbours in time
  of_others.of.paired_us.reset();
  add("unchanged: all on, and switched before", "all on, and never switched", both,
      unchanged_limit_us);
  into_.watched.push_back(bare.finish());
  into_.switched.push_back(switched.finish());
  into_.switched.push_back(never.finish());
}

void switching_bench::switched_often() {
  switched_run often = run_of("host_lazy, switched often", toggle_mode::host_lazy);
  switched_run fresh = run_of("host_lazy, fresh", toggle_mode::host_lazy);
  warm_up(often);
  warm_up(fresh);
  std::mt19937_64 thrown{points() + 1};
  std::vector<layer_set> sets;
  for (std::uint64_t i = 0; i < sets_of_bench; ++i) sets.push_back(random_set(thrown, points()));
  for (int i = 0; i < options_.schedules; ++i) {
    say("switched often", i, options_.schedules);
    often.enable(sets[thrown() % sets.size()]);
    often.call();
    if (i % 8 == 7) often.settle();
  }
  often.enable(all_of(points()));
  often.check();
  paired_times both;
  for (int i = 0; i < options_.repeats; ++i) {
    timed often_us, fresh_us;
    const auto measure = [&](switched_run& one, timed& into) {
      into = device_us_of([&] { return one.timed_call(0); });
      one.settle();
    };
    if (i % 2 == 0) measure(fresh, fresh_us);
    measure(often, often_us);
    if (i % 2 != 0) measure(fresh, fresh_us);
    both.add(often_us, fresh_us);
  }
  often.check();
  fresh.check();
  const double limit = switched_often_limit * spread_of(both.floor_us).median;
  add(fmt::format("host_lazy: all on after {} random sets", options_.schedules),
      "a fresh executable", both, limit);
  into_.switched.push_back(often.finish());
  into_.switched.push_back(fresh.finish());
}

}  // namespace reprise::bench
