// The device memory of one run of a body: staged inputs, outputs, scratch and workspaces.
//
// Taken in order and given back all at once, so the same body takes the same layout each time. A
// warm-up grows it and so learns its size; a recording then gets exactly that, in one block whose
// addresses never move. Where somebody else places a recording's memory it gets two parts: what
// lasts until its next replay (inputs, outputs, what is saved), and what only its body uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <vector>

#include "reprise/device/memory.hpp"

namespace reprise {

// What the body of a step took when it ran: its memory, but for the block of its inputs.
struct run_needs {
  std::size_t bytes = 0;
  std::size_t kept = 0;        // of these, what lasts until the next run
  std::size_t workspaces = 0;  // of these, scratch of kernels
  std::uint64_t draws = 0;
};

// Memory that somebody else owns, longer than whoever is given it.
struct placed_memory {
  std::span<std::byte> kept;
  std::span<std::byte> scratch;
  std::span<std::byte> own;  // what nobody else writes, between replays either
};

class run_memory {
 public:
  // Grows as asked, from `from`. Only work on `stream` may use it, or work ordered after it.
  run_memory(pool& from, stream_ref stream);
  // Exactly `bytes`; taking more throws capture_error: the body took less in its warm-up.
  run_memory(pool& from, stream_ref stream, std::size_t bytes, std::source_location place);

  // The same in memory that somebody else owns.
  run_memory(pool& from, stream_ref stream, const placed_memory& in);

  // Memory until the end of the body.
  std::byte* take(std::size_t bytes, std::source_location place);
  // Memory that lasts until the next run.
  std::byte* keep(std::size_t bytes, std::source_location place);
  // What taking `bytes` uses up.
  static std::size_t taken_for(std::size_t bytes);

  // Scratch for one kernel: `held`, which grows where it is too small. Kernels of one branch run in
  // order and hold one; another branch holds its own.
  std::span<std::byte> workspace(std::size_t bytes, std::span<std::byte>& held,
                                 std::source_location place);

  // Starts over. What was handed out is handed out again; nothing shrinks.
  void restart(stream_ref stream);
  // After the next restart there is room for `bytes`; what is handed out stays where it is.
  void reserve(std::size_t bytes, stream_ref stream, std::source_location place);

  bool contains(const void* begin, std::size_t bytes) const;
  // Bytes that everything taken since the last restart needs in one block.
  std::size_t needed() const { return needed_; }
  // Of these, what lasts.
  std::size_t kept() const { return kept_; }
  // Of these, what kernels have asked for as workspace.
  std::size_t workspaces() const { return workspaces_; }

 private:
  struct area {
    std::span<std::byte> memory;
    std::size_t filled = 0;
  };

  std::byte* take_placed(area& from, std::size_t size, std::source_location place);
  [[noreturn]] void refuse(std::source_location place) const;

  pool* pool_;
  stream_ref stream_;
  bool fixed_ = false;
  std::optional<area> placed_kept_;  // both, or none
  std::optional<area> placed_scratch_;
  std::vector<block> blocks_;  // the last one is being filled
  std::size_t filled_ = 0;     // of the last block
  std::size_t needed_ = 0;
  std::size_t kept_ = 0;
  std::size_t workspaces_ = 0;
  block reserved_;
};

}  // namespace reprise
