// The chain as a step that depends on a chosen number of facts, and on a key as long as one likes.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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

// The output of a chain, on the host.
std::vector<float> chain_output(stream_ref stream, const float* from);
bool same_bits(const std::vector<float>& a, const std::vector<float>& b);

// Runs through a replay_cache only, the path that workloads use. One thread at a time.
class chain_step {
 public:
  // `facts` of them, parameters' addresses and versions among counters; the sources outlive it.
  // With key parts it has an input without elements too, `batch`, whose shape is a part of the key
  // and nothing else: recordings of different batches are the same graph.
  chain_step(const chain_sources& sources, std::int64_t nodes, int facts, bool staged,
             int key_parts = 0);
  chain_step(const chain_step&) = delete;
  chain_step& operator=(const chain_step&) = delete;

  // `host` is read where a block is staged, and is of chain_elements.
  step_result run(replay_cache& cache, stream_ref stream, std::span<const float> host,
                  std::int64_t batch = 0) const;
  // Records the key of this batch ahead of time. Throws error when it is not recorded.
  void prepare(replay_cache& cache, stream_ref stream, std::int64_t batch) const;
  // What all its recordings depend on moves on.
  void change() { versions_.back().bump(); }

  output<float> out() const { return out_; }
  std::size_t facts() const { return what_.declared().facts().size(); }

 private:
  signature declare(int facts, bool staged, int key_parts);
  void body(step_scope& run) const;

  const chain_sources& sources_;
  std::int64_t nodes_;
  std::list<parameter> weights_;  // facts point into both
  std::list<version_counter> versions_;
  std::list<std::uint64_t> parts_;
  std::optional<input<float>> x_;  // set while the signature below is made
  std::optional<input<float>> batch_;
  signature declared_;
  output<float> out_;
  step what_;
};

}  // namespace reprise::bench
