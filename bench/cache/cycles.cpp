#include "bench/cache/cycles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "bench/cache/key_costs.hpp"
#include "bench/replay/chain_step.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

namespace {

constexpr std::int64_t keys = 64;  // each is long gone when its turn comes again
constexpr std::size_t kept_at_once = 8;

held_bytes held_with(stream_ref stream, const byte_budget& budget) {
  held_bytes held = held_now(stream);
  held.budget = budget.held();
  return held;
}

}  // namespace

std::size_t cycle_report::process_growth() const {
  return grown(after_warm_up.process, at_end.process);
}
std::size_t cycle_report::device_growth() const {
  return device_is_apart ? grown(after_warm_up.device, at_end.device) : 0;
}
std::size_t cycle_report::own_growth() const {
  return grown(after_warm_up.own, at_end.own);
}

std::string cycle_report::failure() const {
  if (captured != cycles || evicted + kept != cycles) {
    return fmt::format(
        "{} cycles captured {} recordings, evicted {} and kept {}; each has to capture one, so "
        "mend that before reading the bytes",
        cycles, captured, evicted, kept);
  }
  const auto too_much = [&](const char* what, std::size_t bytes) {
    return fmt::format(
        "{} grew by {} bytes from cycle {} to cycle {}, and may by {}; look for "
        "what a dropped recording leaves behind",
        what, bytes, warm, cycles, growth_limit);
  };
  if (process_is_held && process_growth() > growth_limit)
    return too_much("the process", process_growth());
  if (device_growth() > growth_limit) {
    return too_much("the device's memory in use", device_growth());
  }
  if (own_growth() > growth_limit) return too_much("what Reprise holds", own_growth());
  return {};
}

cycle_report run_cycles(pool& memory, stream_ref stream, std::int64_t nodes, std::uint64_t cycles,
                        const progress& tell) {
  const chain_sources sources{memory, stream};
  const chain_step chain{sources, nodes, cache_facts, false, cache_key_parts_unstaged};
  constexpr int never = std::numeric_limits<int>::max();
  std::size_t one = 0;
  {
    replay_cache first{stream.device()};
    chain.run(first, stream, {}, keys);
    one = first.bytes().recordings;
  }
  byte_budget budget{kept_at_once * one + one / 2};
  replay_cache cache{stream.device(), {.churn_limit = never, .budget = &budget}};
  cycle_report report;
  report.cycles = cycles;
  report.device_is_apart = stream.device().bodies() == device_kind::cuda;
  report.process_is_held = !stream.device().name().starts_with("sim:");
  report.warm = std::min(warm_up_cycles, cycles / 2);
  const std::uint64_t told_every = std::max<std::uint64_t>(1, cycles / 50);
  for (std::uint64_t i = 0; i < cycles; ++i) {
    if (i % told_every == 0) tell("cycles", i, cycles);
    if (i == report.warm) report.after_warm_up = held_with(stream, budget);
    chain.run(cache, stream, {}, static_cast<std::int64_t>(i) % keys);
  }
  tell("cycles", cycles, cycles);
  report.at_end = held_with(stream, budget);
  report.captured = cache.counts().captured;
  report.evicted = cache.counts().evicted;
  report.kept = cache.recordings();
  return report;
}

}  // namespace reprise::bench
