// Getting the inputs of a call into the static memory that a body reads.
//
// Host inputs are gathered in a pinned slot, so that they leave in one copy and the caller may
// reuse its memory at once. A slot is rewritten only when its copy has finished; when none is free
// the call waits, and that is counted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise {

// Where each input lies behind the start of the staged block.
class input_layout {
 public:
  explicit input_layout(bindings given);

  std::size_t bytes() const { return bytes_; }
  std::size_t offset(std::size_t slot) const { return offsets_[slot]; }

 private:
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

class staging {
 public:
  explicit staging(device_ref device) : device_{device} {}

  // Copies the inputs to `block` in stream order. Allocates pinned memory at the first call, and
  // when a layout needs more than any before.
  void stage(stream_ref stream, bindings given, const input_layout& layout, std::byte* block,
             std::source_location place);

  std::size_t pinned_bytes() const;
  std::uint64_t waits() const { return waits_; }

 private:
  struct slot {
    pinned_block memory;
    std::optional<event> copied;
    bool in_use = false;
  };

  slot& free_slot(std::size_t bytes, std::source_location place);

  static constexpr std::size_t slots = 4;

  device_ref device_;
  std::array<slot, slots> slots_;
  std::size_t next_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace reprise
