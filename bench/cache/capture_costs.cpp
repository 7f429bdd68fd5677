#include "bench/cache/capture_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "bench/cache/key_costs.hpp"
#include "bench/replay/bare_chain.hpp"
#include "bench/replay/chain_step.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

namespace {

constexpr int never = std::numeric_limits<int>::max();
constexpr int refills = 5;  // of the recordings that are dropped at once

chain_step keyed_chain(const chain_sources& sources, std::int64_t nodes) {
  return {sources, nodes, cache_facts, false, cache_key_parts_unstaged};
}

template <class Work>
double timed(stream_ref stream, Work&& work) {
  stream.synchronize();
  const double began = now_us();
  work();
  return now_us() - began;
}

void record(const chain_step& chain, replay_cache& cache, stream_ref stream, std::int64_t batch) {
  const step_result done = chain.run(cache, stream, {}, batch);
  if (done.how != ran::captured) {
    throw error{fmt::format("a chain was {} where it was to be captured{}{}", name_of(done.how),
                            done.why ? ": " : "", done.why ? done.why->text() : "")};
  }
}

// One number of nodes, recorded again and again into an empty cache.
capture_row measure_row(pool& memory, stream_ref stream, void* native_stream,
                        const chain_sources& sources, std::int64_t nodes, int captures) {
  const chain_step chain = keyed_chain(sources, nodes);
  replay_cache cache{stream.device(), {.churn_limit = never}};
  std::vector<double> us[6];
  for (int i = 0; i < captures + 1; ++i) {
    cache.sleep();
    const double total = timed(stream, [&] { record(chain, cache, stream, 1); });
    double bare = 0;
    if (native_stream != nullptr) {
      std::optional<bare_chain> made;
      bare = timed(stream,
                   [&] { made.emplace(memory, stream, sources, nodes, false, native_stream); });
    }
    if (i == 0) continue;  // libraries and pools warm up
    const auto [warm_up, in_capture, instantiation, first_replay] =
        cache.report().recordings.front().phases;
    const auto per_node = static_cast<double>(nodes);
    const double ms[] = {warm_up, in_capture, instantiation, first_replay};
    for (std::size_t p = 0; p < 4; ++p) us[p].push_back(1000 * ms[p] / per_node);
    us[4].push_back(total / per_node);
    if (native_stream != nullptr) us[5].push_back(bare / per_node);
  }
  const auto of = [&](std::size_t i) { return spread_of(std::move(us[i])); };
  return {nodes, of(0), of(1), of(2), of(3), of(4), of(5)};
}

// Two keys and room for one, beside one key and room for it.
call_figure measure_making_room(stream_ref stream, const chain_sources& sources, std::int64_t nodes,
                                int captures) {
  const chain_step chain = keyed_chain(sources, nodes);
  replay_cache roomy{stream.device(), {.churn_limit = never}};
  record(chain, roomy, stream, 1);
  const std::size_t one = roomy.bytes().recordings;
  byte_budget room_for_one{one + one / 2};
  replay_cache tight{stream.device(), {.churn_limit = never, .budget = &room_for_one}};
  record(chain, tight, stream, 0);
  std::vector<double> evicting;
  std::vector<double> with_room;
  for (int i = 0; i < captures; ++i) {
    evicting.push_back(timed(stream, [&] { record(chain, tight, stream, (i + 1) % 2); }));
    roomy.sleep();
    with_room.push_back(timed(stream, [&] { record(chain, roomy, stream, 1); }));
  }
  return {"record, evicting another", "record with room", spread_of(std::move(evicting)),
          spread_of(std::move(with_room)), std::nullopt};
}

call_figure measure_dropping(stream_ref stream, const chain_sources& sources, std::int64_t nodes,
                             int recordings, const progress& tell) {
  chain_step chain = keyed_chain(sources, nodes);
  replay_cache cache{stream.device(), {.churn_limit = never}};
  std::vector<double> dropping;
  std::vector<double> looking;
  for (int i = 0; i < refills; ++i) {
    tell("dropping", static_cast<std::size_t>(i), refills);
    for (int batch = 0; batch < recordings; ++batch) record(chain, cache, stream, batch);
    looking.push_back(timed(stream, [&] { cache.drop_stale(); }));
    chain.change();
    std::size_t dropped = 0;
    dropping.push_back(timed(stream, [&] { dropped = cache.drop_stale(); }));
    if (dropped != static_cast<std::size_t>(recordings)) {
      throw error{fmt::format("{} of {} stale recordings were dropped", dropped, recordings)};
    }
  }
  return {fmt::format("drop_stale, {} dropped", recordings), "drop_stale, none dropped",
          spread_of(std::move(dropping)), spread_of(std::move(looking)), std::nullopt};
}

}  // namespace

capture_costs measure_captures(pool& memory, stream_ref stream, void* native_stream,
                               const capture_costs_options& options, const progress& tell) {
  const chain_sources sources{memory, stream};
  capture_costs all;
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    tell("captures", i, options.nodes.size());
    all.rows.push_back(
        measure_row(memory, stream, native_stream, sources, options.nodes[i], options.captures));
  }
  const std::int64_t nodes = options.nodes.front();
  const auto scale = static_cast<double>(nodes);
  const spread& floor = all.rows.front().floor;
  all.bare_us = {floor.median * scale, floor.p10 * scale, floor.p90 * scale, floor.count};
  all.figures.push_back(measure_making_room(stream, sources, nodes, options.captures));
  all.figures.push_back(measure_dropping(stream, sources, nodes, options.recordings, tell));
  stream.synchronize();
  return all;
}

}  // namespace reprise::bench
