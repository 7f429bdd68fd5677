#include "bench/cache/key_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <list>
#include <optional>
#include <utility>

#include "bench/measure/silence.hpp"
#include "bench/replay/bare_chain.hpp"
#include "bench/replay/chain_step.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

namespace {

constexpr int warm_up_rounds = 3;  // compared, and not measured
constexpr std::int64_t hit_batch = 1'000'001;
constexpr std::int64_t missed_batch = 1'000'002;

// One way of running the chain.
struct way {
  std::string what;
  std::function<void()> call;
  std::function<const float*()> output;
  bool staged = false;
  std::string rule;                  // of its eager runs; empty: it replays
  const replay_cache* by = nullptr;  // null of a bare launch
  std::vector<double> us;
  std::uint64_t calls = 0;
  bool equal = true;
};

// A chain with a cache of its own; ways that share one differ in their batch.
struct cached_chain {
  cached_chain(const chain_sources& sources, std::int64_t nodes, bool staged, device_ref device,
               const cache_options& options)
      : chain{sources, nodes, cache_facts, staged,
              staged ? cache_key_parts : cache_key_parts_unstaged},
        cache{device, options} {}

  chain_step chain;
  replay_cache cache;
  std::optional<step_result> last;
};

class rounds {
 public:
  rounds(pool& memory, stream_ref stream, void* native_stream, const key_costs_options& options)
      : stream_{stream}, options_{options}, block_{stream.device()}, sources_{memory, stream} {
    add_cached("eager", {.record = false}, false, "recording is off");
    add_cached("eager, one staged block", {.record = false}, true, "recording is off");
    if (native_stream != nullptr) {
      add_bare("bare", memory, native_stream, false);
      add_bare("bare, one staged block", memory, native_stream, true);
    }
    prepared_ = &add_cached("hit", {.prepared_only = true}, false, "");
    recorded_ = &add_cached("hit, one staged block", {}, true, "");
    add_way("miss, not prepared", *prepared_, missed_batch, false, "not prepared");
    add_cached("miss, not admitted yet", {.admit_after = std::numeric_limits<int>::max()}, false,
               "not admitted yet");
    add_cached("miss, over budget", {.budget = &no_room_}, false, "budget");
  }

  // Fills both caches with recordings of other batches; gives the times of preparing one.
  std::vector<double> fill(const progress& tell) {
    std::vector<double> us;
    const auto count = static_cast<std::size_t>(options_.recordings);
    for (std::size_t i = 0; i < count; ++i) {
      if (i % 20 == 0) tell("recordings", i, count);
      const auto batch = static_cast<std::int64_t>(i + 1);
      stream_.synchronize();
      const double began = now_us();
      prepared_->chain.prepare(prepared_->cache, stream_, batch);
      us.push_back(now_us() - began);
      recorded_->chain.run(recorded_->cache, stream_, block_.pageable, batch);
    }
    prepared_->chain.prepare(prepared_->cache, stream_, hit_batch);
    tell("recordings", count, count);
    return us;
  }

  void call_and_compare() {
    block_.fill(++round_);
    std::vector<float> expected[2];  // by staged; the eager run of each comes first
    for (way& w : ways_) {
      call(w);
      const std::vector<float> got = chain_output(stream_, w.output());
      std::vector<float>& of_eager = expected[w.staged ? 1 : 0];
      if (of_eager.empty()) of_eager = got;
      w.equal = w.equal && same_bits(got, of_eager);
    }
  }

  // Another one begins each time, so that nobody always follows the same neighbour from idle. The
  // queue is empty at each call: a full one would make the host wait for the device.
  void measure() {
    block_.fill(++round_);
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      way& w = *std::next(ways_.begin(), static_cast<std::ptrdiff_t>((round_ + i) % ways_.size()));
      stream_.synchronize();
      const double began = now_us();
      call(w);
      w.us.push_back(now_us() - began);
    }
    stream_.synchronize();
  }

  key_costs report() {
    key_costs all;
    for (way& w : ways_) {
      if (w.by != nullptr) all.counts.push_back(counts_of(w));
    }
    std::list<std::pair<std::string, spread>> spreads;
    for (way& w : ways_) spreads.emplace_back(w.what, spread_of(std::move(w.us)));
    const auto of = [&](std::string_view what) {
      const auto at = std::ranges::find(spreads, what, &std::pair<std::string, spread>::first);
      return at == spreads.end() ? spread{} : at->second;
    };
    const auto add = [&](const char* what, const char* floor, std::optional<double> limit) {
      all.figures.push_back({what, floor, of(what), of(floor), limit});
    };
    add("hit", "bare", hit_limit_us);
    add("hit, one staged block", "bare, one staged block", std::nullopt);
    add("miss, not prepared", "eager", miss_limit_us);
    add("miss, not admitted yet", "eager", miss_limit_us);
    add("miss, over budget", "eager", miss_limit_us);
    return all;
  }

 private:
  void call(way& w) const {
    w.call();
    ++w.calls;
  }

  void add_way(std::string what, cached_chain& own, std::int64_t batch, bool staged,
               std::string rule) {
    way& made = ways_.emplace_back();
    made.what = std::move(what);
    made.staged = staged;
    made.rule = std::move(rule);
    made.by = &own.cache;
    made.call = [this, &own, batch] {
      own.last = own.chain.run(own.cache, stream_, block_.pageable, batch);
    };
    made.output = [&own] { return (*own.last)[own.chain.out()].get().data(); };
  }

  cached_chain& add_cached(std::string what, const cache_options& options, bool staged,
                           std::string rule) {
    cached_chain& own =
        cached_.emplace_back(sources_, options_.nodes, staged, stream_.device(), options);
    add_way(std::move(what), own, rule.empty() ? hit_batch : missed_batch, staged, std::move(rule));
    return own;
  }

  void add_bare(std::string what, pool& memory, void* native_stream, bool staged) {
    bare_chain& own =
        bare_.emplace_back(memory, stream_, sources_, options_.nodes, staged, native_stream);
    way& made = ways_.emplace_back();
    made.what = std::move(what);
    made.staged = staged;
    made.call = [this, &own] { own.launch(block_); };
    made.output = [&own] { return own.out(); };
  }

  way_counts counts_of(const way& w) const {
    const step_counts& all = w.by->counts();
    way_counts counts{w.what, w.calls, all.replayed, 0, w.rule.empty(), w.equal};
    // A recording that its first run made is one call that was no replay.
    if (w.rule.empty() && all.captured != 0) ++counts.replayed;
    const auto reason = all.eager_reasons.find(w.rule);
    if (reason != all.eager_reasons.end()) counts.eager = reason->second;
    return counts;
  }

  stream_ref stream_;
  key_costs_options options_;
  byte_budget no_room_{1};
  host_block block_;
  chain_sources sources_;
  std::list<cached_chain> cached_;
  std::list<bare_chain> bare_;
  std::list<way> ways_;
  cached_chain* prepared_ = nullptr;
  cached_chain* recorded_ = nullptr;
  std::size_t round_ = 0;
};

}  // namespace

std::string key_costs::failure() const {
  for (const way_counts& one : counts) {
    if ((one.replays ? one.replayed : one.eager) != one.calls) {
      return fmt::format(
          "{}: of {} calls {} were replayed and {} ran eagerly as planned; its figures are of "
          "something else, so mend that before reading them",
          one.what, one.calls, one.replayed, one.eager);
    }
    if (!one.equal) {
      return fmt::format(
          "{}: the output differs from that of the eager run; its figures are of other work, so "
          "report it with the command that showed it",
          one.what);
    }
  }
  return {};
}

key_costs measure_keys(pool& memory, stream_ref stream, void* native_stream,
                       const key_costs_options& options, const progress& tell) {
  const silence misses_are_planned;
  rounds all{memory, stream, native_stream, options};
  std::vector<double> prepared = all.fill(tell);
  for (int i = 0; i < warm_up_rounds; ++i) all.call_and_compare();
  const auto repeats = static_cast<std::size_t>(options.repeats);
  const std::size_t told_every = std::max<std::size_t>(1, repeats / 50);
  for (std::size_t i = 0; i < repeats; ++i) {
    if (i % told_every == 0) tell("hits and misses", i, repeats);
    all.measure();
  }
  all.call_and_compare();
  tell("hits and misses", repeats, repeats);
  key_costs found = all.report();
  found.prepare = {"prepare", "", spread_of(std::move(prepared)), {}, std::nullopt};
  return found;
}

}  // namespace reprise::bench
