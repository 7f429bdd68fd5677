// Taps that are switched: monitors of every mode, whose sets change from step to step by the seed,
// while recordings are dropped and made again; each step has the records of its set, and the result
// of a step that nobody watches.
#include <cstring>
#include <list>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "reprise/tap/monitor.hpp"
#include "scenarios/lists.hpp"
#include "scenarios/steps.hpp"

namespace reprise::scenarios {

namespace {

constexpr int switched_layers = 4;
constexpr std::int32_t switched_steps = 36;
constexpr std::int32_t switched_factor = 3;

class switched_dice {
 public:
  explicit switched_dice(std::uint64_t seed) : state_{seed * 0x9e3779b97f4a7c15U + 1} {}
  std::uint32_t below(std::uint32_t limit) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::uint32_t>(state_ >> 33) % limit;
  }

 private:
  std::uint64_t state_;
};

// Layer i appends the digit i + 1 to what it marks first.
void marked_layers(step_scope& run, view<std::int32_t> y) {
  const dims shape{static_cast<std::int64_t>(y.size()), 1};
  for (int layer = 0; layer < switched_layers; ++layer) {
    run.mark({"layer", layer}, as_tensor(y, shape));
    launch(run, append_digit, inout(y), layer + 1);
  }
}

std::int32_t before_layer(int layer, std::int32_t x) {
  std::int32_t value = switched_factor * x;
  for (int i = 0; i < layer; ++i) value = value * 10 + i + 1;
  return value;
}

using layer_set = std::set<int>;

std::string text_of(const layer_set& set) {
  if (set.empty()) return "none";
  std::string text = "layer:";
  for (const int layer : set) text += (text.back() == ':' ? "" : "+") + std::to_string(layer);
  return text;
}

layer_set drawn_set(switched_dice& thrown) {
  layer_set set;
  for (int layer = 0; layer < switched_layers; ++layer) {
    if (thrown.below(2) == 0) set.insert(layer);
  }
  return set;
}

struct switched_record {
  int layer;
  std::uint64_t step;
  numbers values;
  bool operator==(const switched_record&) const = default;
};

// One monitor, what it must have taken, and what it took.
struct switched_watch {
  switched_watch(device_ref dev, const monitor_options& how, layer_set of, bool real)
      : mode{how.switch_by}, watched{std::move(of)}, by_table{real}, eye{dev, how} {
    watch_these();
    eye.deliver_to([this](const tap_record& one) {
      switched_record taken{one.layer, one.step, numbers(one.bytes.size() / 4)};
      if (!one.bytes.empty()) std::memcpy(taken.values.data(), one.bytes.data(), one.bytes.size());
      took.push_back(std::move(taken));
    });
  }

  void watch_these() {
    const row_mode rows = by_table ? row_mode::real() : row_mode::all();
    eye.watch(tap_spec{point_set{text_of(watched)}, rows});
  }
  // Whether a step leaves anything of it: such steps are the recordings of no monitor.
  bool fires(step_gate gate) const {
    return !watched.empty() && (!enabled.empty() || gate == step_gate::ungated);
  }
  void expect(std::int32_t x, std::size_t length, std::size_t rows, step_gate gate) {
    for (const int layer : watched) {
      const bool on = enabled.contains(layer) || (gate == step_gate::ungated && !by_table);
      if (!on) continue;
      ++publications;
      expected.push_back({layer, steps, numbers(rows, before_layer(layer, x))});
      if (by_table || rows == length) continue;
      expected.push_back({layer, steps, numbers(length - rows, before_layer(layer, x))});
    }
    ++steps;
  }

  toggle_mode mode;
  layer_set watched;
  bool by_table;
  layer_set enabled{0, 1, 2, 3};
  std::uint64_t version = 0;  // of what it watches
  std::uint64_t steps = 0;
  std::uint64_t publications = 0;
  std::vector<switched_record> expected;  // rows of nobody are a record of their own
  std::vector<switched_record> took;
  monitor eye;
};

monitor_options drawn_options(switched_dice& thrown) {
  constexpr toggle_mode modes[] = {toggle_mode::automatic, toggle_mode::variants,
                                   toggle_mode::host_lazy, toggle_mode::host_eager,
                                   toggle_mode::device};
  monitor_options how;
  how.ring_bytes = 480;  // of two steps and a half
  how.staging_bytes = 1024;
  how.slots = 10;
  how.flights = 4;
  how.most_points = switched_layers;
  how.most_runs = 8;
  how.markers = true;
  how.thread = thrown.below(2) == 0;
  how.switch_by = modes[thrown.below(5)];
  return how;
}

class switched_run {
 public:
  switched_run(device_ref dev, std::uint64_t seed)
      : at_{dev},
        other_{dev},
        thrown_{seed},
        watched_{at_, switched_factor, marked_layers},
        plain_{at_, switched_factor, marked_layers},
        cache_{dev, {.churn_limit = 1'000'000}},
        unwatched_{dev} {
    order(at_.s, other_);
    const std::uint32_t monitors = 1 + thrown_.below(2);
    for (std::uint32_t i = 0; i < monitors; ++i) attach();
  }

  void run() {
    for (std::int32_t i = 0; i < switched_steps; ++i) {
      if (i == switched_steps / 2 && thrown_.below(2) == 0) attach();
      change();
      step(i % 7);
    }
    for (switched_watch& one : watches_) require_all(one);
    require_counts(cache_.counts(), captured_, replayed_, 0);
    order(other_, at_.s);
  }

 private:
  void attach() {
    const monitor_options how = drawn_options(thrown_);
    layer_set of = drawn_set(thrown_);
    of.insert(1);
    watches_.emplace_back(at_.dev, how, std::move(of), thrown_.below(3) == 0);
    cache_.observe(watches_.back().eye.observer());
  }

  // What is on, and whether anything is recorded, ahead of a step.
  void change() {
    for (switched_watch& one : watches_) {
      if (thrown_.below(2) == 0) continue;
      const std::uint32_t which = thrown_.below(4);
      if (which == 0) one.enabled = {};
      if (which == 1) one.enabled = {0, 1, 2, 3};
      if (which >= 2) one.enabled = drawn_set(thrown_);
      one.eye.enable(point_set{text_of(one.enabled)});
    }
    if (thrown_.below(12) == 0) {
      cache_.sleep();
      kept_.clear();
    }
    if (thrown_.below(12) == 0) {
      switched_watch& one = watches_.front();
      one.watched = drawn_set(thrown_);
      ++one.version;
      one.watch_these();
    }
  }

  void step(std::int32_t x) {
    const std::size_t length = few + 2 * thrown_.below(3);
    const std::size_t rows = 1 + thrown_.below(static_cast<std::uint32_t>(length));
    const stream_ref on = thrown_.below(3) == 0 ? static_cast<stream_ref>(other_) : at_.s;
    const step_gate gate = thrown_.below(6) == 0 ? step_gate::ungated : step_gate::gated;
    const request_rows whose{7, 0, static_cast<std::int64_t>(rows), 0, x};
    recorded_as key{length, {}};
    bool waits = thrown_.below(4) == 0;
    for (switched_watch& one : watches_) {
      if (one.fires(gate)) key.second.emplace_back(&one, one.version);
      waits = waits || one.mode == toggle_mode::host_eager;
      one.expect(x, length, rows, gate);
    }
    // Host_eager changes what is not in flight; its owner sees to that.
    if (waits) {
      at_.s.synchronize();
      other_.synchronize();
    }
    for (switched_watch& one : watches_) one.eye.plan_step({&whose, 1}, gate);
    const numbers in(length, x);
    const bool hit = !kept_.insert(key).second;
    ++(hit ? replayed_ : captured_);
    step_result done = cache_.run(on, *watched_.what, {watched_.x.from_host(in)});
    require(done.how == (hit ? ran::replayed : ran::captured), "a step ran in another way");
    step_result plain = unwatched_.run(on, *plain_.what, {plain_.x.from_host(in)});
    const numbers made = values_of(on, done[watched_.y].get());
    require_equal(made, values_of(on, plain[plain_.y].get()), "what the unwatched step made");
    require_equal(made, numbers(length, before_layer(switched_layers, x)), "what a step made");
  }

  static void require_all(switched_watch& one) {
    one.eye.flush();
    const auto count = static_cast<std::int64_t>(one.expected.size());
    require_equal(static_cast<std::int64_t>(one.took.size()), count, "records");
    for (std::size_t i = 0; i < one.took.size(); ++i) {
      require_equal(one.took[i].layer, one.expected[i].layer, "the layer of a record");
      require_equal(static_cast<std::int64_t>(one.took[i].step),
                    static_cast<std::int64_t>(one.expected[i].step), "the step of a record");
      require_equal(one.took[i].values, one.expected[i].values, "what was marked");
    }
    const tap_counts counts = one.eye.counts();
    const auto publications = static_cast<std::int64_t>(one.publications);
    require_equal(static_cast<std::int64_t>(counts.planned), publications, "planned publications");
    require_equal(static_cast<std::int64_t>(counts.published), publications, "publications");
    require_equal(static_cast<std::int64_t>(counts.lost + counts.dropped + counts.mislabelled), 0,
                  "lost, dropped or mislabelled");
  }

  // A length, and who leaves what in it.
  using recorded_as =
      std::pair<std::size_t, std::vector<std::pair<const switched_watch*, std::uint64_t>>>;

  desk at_;
  stream other_;
  switched_dice thrown_;
  scaling watched_;
  scaling plain_;
  replay_cache cache_;
  replay_cache unwatched_;
  std::list<switched_watch> watches_;
  std::set<recorded_as> kept_;
  std::uint64_t captured_ = 0;
  std::uint64_t replayed_ = 0;
};

void switched_taps(device_ref dev) {
  const std::optional<std::uint64_t> seed = seed_of(dev);
  const std::uint64_t first = seed.value_or(1);
  for (std::uint64_t i = first; i <= (seed ? first : 6); ++i) switched_run{dev, i}.run();
}

}  // namespace

std::vector<scenario> switched_tap_scenarios() {
  return {
      {"switched_taps",
       "Monitors of every mode switch their points from step to step, and each step has just the "
       "records of its set.",
       switched_taps,
       {"tap: waited for room", "toggle: the host switched a work", "toggle: a set came again"},
       {}},
  };
}

}  // namespace reprise::scenarios
