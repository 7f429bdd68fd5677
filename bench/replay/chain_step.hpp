// The chain as a step that depends on a chosen number of facts.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>

#include "bench/replay/chain.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise::bench {

// What every chain reads: the first node's input where nothing is staged, and the gain.
struct chain_sources {
  chain_sources(pool& memory, stream_ref stream);

  buffer<float> input;
  buffer<float> gain;
};

// Runs through a replay_cache only, the path that workloads use. One thread at a time.
class chain_step {
 public:
  // `facts` of them, parameters' addresses and versions among counters; the sources outlive it.
  chain_step(const chain_sources& sources, std::int64_t nodes, int facts, bool staged);
  chain_step(const chain_step&) = delete;
  chain_step& operator=(const chain_step&) = delete;

  // `host` is read where a block is staged, and is of chain_elements.
  step_result run(replay_cache& cache, stream_ref stream, std::span<const float> host) const;

  output<float> out() const { return out_; }
  std::size_t facts() const { return what_.declared().facts().size(); }

 private:
  signature declare(int facts, bool staged);
  void body(step_scope& run) const;

  const chain_sources& sources_;
  std::int64_t nodes_;
  std::list<parameter> weights_;  // facts point into both
  std::list<version_counter> versions_;
  std::optional<input<float>> x_;  // set while the signature below is made
  signature declared_;
  output<float> out_;
  step what_;
};

}  // namespace reprise::bench
