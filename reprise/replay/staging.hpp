// Getting the inputs of a call into the static memory that a body reads.
//
// Host inputs are gathered in a pinned slot, so that they leave in one copy and the caller may
// reuse its memory at once. A slot is rewritten only when its copy has finished; where that is not
// so yet the call waits, and the wait is counted.
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

// Whether a run gets direct inputs at their addresses, as an eager run does, or behind words that
// each replay brings, as a recording and its warm-up do.
enum class direct_as : std::uint8_t { addresses, words };

// The inputs of this call that are declared direct and lie on the device; bit i is input i.
std::uint64_t direct_inputs(const signature& declared, bindings given);

// Where each input lies behind the start of the staged block: its elements, or the word of a direct
// one.
class input_layout {
 public:
  input_layout(const signature& declared, bindings given, std::uint64_t direct = 0,
               direct_as how = direct_as::words);

  std::size_t bytes() const { return bytes_; }
  std::size_t inputs() const { return offsets_.size(); }
  std::size_t offset(std::size_t slot) const { return offsets_[slot]; }
  // Of the words of a philox_counter, behind the inputs, where the step draws.
  std::size_t random_offset() const { return random_offset_; }
  std::uint64_t direct() const { return direct_; }
  bool is_direct(std::size_t slot) const { return (direct_ >> slot & 1) != 0; }

  // What of a binding is copied into the block; no bytes for outputs and where nothing is.
  struct piece {
    const std::byte* from = nullptr;
    std::size_t bytes = 0;
    bool on_host = false;
  };
  piece piece_of(const binding& b) const;

 private:
  std::vector<std::size_t> offsets_;
  std::uint64_t direct_;
  direct_as how_;
  std::size_t random_offset_ = 0;
  std::size_t bytes_ = 0;
};

// Slots lie in two halves, filled one after the other. An event is recorded when a half is left and
// asked when it is entered again, so a call in the middle of a half makes one copy and no other
// call of the device; and while fewer calls are queued than a half has slots, nothing waits.
//
// Each stream that stages here has been ordered behind the one before; that is what makes one event
// stand for a whole half. One thread at a time.
class staging {
 public:
  // A half has this many slots, and fewer where that would be more than `small_half` bytes; two at
  // least.
  static constexpr std::size_t most_slots = 16;
  static constexpr std::size_t fewest_slots = 2;
  static constexpr std::size_t small_half = std::size_t{64} << 10;

  explicit staging(device_ref device) : device_{device} {}

  // Copies the inputs, and the counter's words unless it is null, to `block` in stream order.
  // Allocates pinned memory at the first call, and when a half is entered that is smaller than the
  // largest call so far wants it.
  void stage(stream_ref stream, bindings given, const input_layout& layout, std::byte* block,
             std::source_location place, const philox_counter* random = nullptr);

  std::size_t pinned_bytes() const;
  std::uint64_t waits() const { return waits_; }

 private:
  struct half {
    pinned_block memory;
    std::optional<event> left;  // recorded behind the last copy out of it
  };

  // Pinned memory for `bytes` that no queued copy reads.
  std::byte* free_slot(std::size_t bytes, stream_ref stream, std::source_location place);
  void enter_other_half(stream_ref stream, std::source_location place);

  device_ref device_;
  std::array<half, 2> halves_;
  std::size_t current_ = 0;
  std::size_t used_ = 0;    // bytes of the current half
  std::size_t wanted_ = 0;  // bytes of a half, for the largest call so far
  std::uint64_t waits_ = 0;
};

}  // namespace reprise
