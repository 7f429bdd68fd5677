// The chain as a graph of CUDA's own with the memory that it touches: what a replay is held
// against.
//
// Only where native_stream_of gives a stream. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "bench/replay/chain_step.hpp"
#include "bench/replay/raw_cuda.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

// CUDA's own stream behind this one; null where there is none, or this build has no peer.
void* native_stream_of(stream_ref stream);

// Where the host's block lies, for those who stage it: pageable for Reprise, which does the rest,
// and pinned for the bare launch, as whoever writes that has to keep it.
struct host_block {
  explicit host_block(device_ref device)
      : pageable(chain_elements), pinned_copy{device, chain_elements} {}

  // Another block for the next round.
  void fill(std::size_t round);

  std::vector<float> pageable;
  pinned<float> pinned_copy;
};

// The sources, the stream and the pool outlive it, and its last launch has finished when it goes.
class bare_chain {
 public:
  bare_chain(pool& memory, stream_ref stream, const chain_sources& sources, std::int64_t nodes,
             bool staged, void* native_stream);

  // Behind a copy of the block where it is staged.
  void launch(const host_block& block);
  const float* out() const { return out_.all().data(); }

 private:
  bool staged_;
  buffer<float> between_;
  buffer<float> input_;  // where a staged block goes
  buffer<float> out_;
  raw_chain chain_;
};

}  // namespace reprise::bench
