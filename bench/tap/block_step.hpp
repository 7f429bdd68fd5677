// A step that does nearly nothing but mark: blocks of a source that lie side by side, each of one
// point. Or it copies them within the device instead, as nodes of the same graph: what producers
// are held against.
#pragma once

#include <vector>

#include "bench/tap/marked_step.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

// What steps mark: element i holds i % 65,521.
class block_source {
 public:
  block_source(pool& memory, stream_ref stream, std::size_t bytes);

  view<float> part(std::size_t first, std::size_t count) const;
  // Whether these are the elements from `first` on.
  static bool holds(std::size_t first, std::span<const std::byte> bytes);

 private:
  buffer<float> all_;
  buffer<std::int32_t> weights_;
  friend class block_step;
};

enum class block_use : std::uint8_t { marks, copies };

class block_step {
 public:
  // `points` blocks of `bytes`, a multiple of 256. The source has them all and outlives it.
  block_step(const block_source& source, int points, std::size_t bytes, block_use use);
  block_step(const block_step&) = delete;
  block_step& operator=(const block_step&) = delete;

  marked_step marked() const;

 private:
  void body(step_scope& run) const;

  const block_source& source_;
  int points_;
  std::size_t elements_;  // of a block
  block_use use_;
  signature declared_{"blocks"};
  output<float> out_;
  step what_;
};

}  // namespace reprise::bench
