// The device memory that the frames of a pool share.
//
// A frame keeps its state in it, and its graphs use what is free beside as scratch: free when they
// were captured, so scratch may lie where frames that are captured later keep their state, never
// where earlier ones do. That is what revocations.hpp is about. Frames of several slots are pending
// together by design: their scratch lies apart, where no frame keeps anything, and all of them use
// the same. Memory comes in chunks, which grow only; a span is found first-fit. Used under the turn
// of its pool (lane.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/grad/revocations.hpp"
#include "reprise/replay/budget.hpp"

namespace reprise {

struct frame;

class frame_memory {
 public:
  frame_memory(device_ref device, byte_budget& budget, std::string label);
  frame_memory(const frame_memory&) = delete;
  frame_memory& operator=(const frame_memory&) = delete;

  // Throws usage_error when the budget has no room for what it would grow by, out_of_memory when
  // the device has none.
  std::span<std::byte> take(std::size_t bytes, stream_ref stream, std::source_location place);
  void give_back(std::span<std::byte> taken) noexcept;
  // Scratch that is nobody's to keep; given out again to the next that asks.
  std::span<std::byte> take_apart(std::size_t bytes, stream_ref stream, std::source_location place);

  // Frames in capture order.
  std::uint64_t add(const std::shared_ptr<frame>& one);
  std::vector<std::shared_ptr<frame>> frames() const;
  // Lets go of what dead frames left behind.
  void prune();
  bool is_empty() const { return frames_.empty(); }
  bool is_charged_to(const byte_budget& budget) const { return share_.is_of(budget); }

  // Its first backward was captured: forwards that come now have a pool of their own.
  void close() noexcept { closed_ = true; }
  bool is_closed() const noexcept { return closed_; }

  // When it goes, its memory is given back behind what this stream has then been given.
  void freed_on(stream_ref stream);
  // Gives all memory back to its device pool, and that to the device where it can.
  void drop_all();

  std::size_t bytes() const noexcept { return bytes_; }
  revocations voided;

 private:
  struct chunk {
    block memory;
    std::map<std::byte*, std::size_t> free;  // by address; neighbours are merged
    bool is_apart = false;                   // scratch alone: nothing of it is ever taken
  };

  std::span<std::byte> take_from(chunk& from, std::size_t bytes);
  void grow(std::size_t bytes, stream_ref stream, std::source_location place);

  pool memory_;
  budget_share share_;
  std::vector<chunk> chunks_;
  std::size_t bytes_ = 0;
  std::map<std::uint64_t, std::weak_ptr<frame>> frames_;  // by capture order
  std::uint64_t next_index_ = 1;
  bool closed_ = false;
};

}  // namespace reprise
