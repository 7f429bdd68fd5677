// Which bytes a checked body touched, exactly: the views of a checked compile note what they reach.
//
// Whoever runs a checked body does so under `noting_touches`, and compares `taken()` with what the
// launch declared. Without a log the body runs and nothing is noted.
//
// Two bits for each byte of memory, in pages found by address, so that it is exact in any order of
// touches: a note is some 3 ns (15 in a walk that jumps from page to page), taking and clearing
// half a microsecond for each 4 KiB that were touched. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reprise/device/access.hpp"

namespace reprise {

class touch_log {
 public:
  touch_log() = default;
  touch_log(const touch_log&) = delete;
  touch_log& operator=(const touch_log&) = delete;

  void note(const void* at, std::size_t bytes, bool writes) {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    const std::uintptr_t bit = first % word_bytes;
    if (bytes - 1 < word_bytes - bit) [[likely]] {  // zero bytes wrap, and go the long way
      mark(first, (~std::uint64_t{0} >> (word_bytes - bytes)) << bit, writes);
    } else {
      note_long(first, bytes, writes);
    }
  }

  // What was touched since the last clear: what was read before this log's own writes to it, then
  // what was written, each by address, no two of a kind touching. Until the next call.
  std::span<const touched_range> taken();

  // Forgets all of it, and keeps the memory.
  void clear();

 private:
  static constexpr std::uintptr_t word_bytes = 64;  // of memory, for one word of bits
  static constexpr std::uintptr_t page_words = 64;
  static constexpr std::uintptr_t page_bytes = page_words * word_bytes;

  struct page {
    std::array<std::uint64_t, page_words> read{};
    std::array<std::uint64_t, page_words> written{};
  };
  struct place {
    std::uintptr_t number = ~std::uintptr_t{0};  // no page has it: it would end past all memory
    page* at = nullptr;
  };

  // `mask`: of the word that `first` lies in. What this body has written it may read as its own.
  void mark(std::uintptr_t first, std::uint64_t mask, bool writes) {
    page& p = page_of(first / page_bytes);
    const std::uintptr_t word = first / word_bytes % page_words;
    if (writes) {
      p.written[word] |= mask;
    } else {
      p.read[word] |= mask & ~p.written[word];
    }
  }

  page& page_of(std::uintptr_t number) {
    const place& seen = recent_[number % recent_.size()];
    return seen.number == number ? *seen.at : find(number);
  }

  page& find(std::uintptr_t number);
  void note_long(std::uintptr_t first, std::size_t bytes, bool writes);
  void append_ranges(bool writes);

  std::array<place, 64> recent_;
  std::unordered_map<std::uintptr_t, page*> pages_;
  std::vector<std::unique_ptr<page>> storage_;  // the first pages_.size() are in use
  std::vector<place> order_;                    // those in use, for taken()
  std::vector<touched_range> ranges_;
};

// Where checked views of this thread note; none at first.
inline constinit thread_local touch_log* touches_of_this_thread = nullptr;

// While it lives, it is this log.
class noting_touches {
 public:
  explicit noting_touches(touch_log& in) : before_{std::exchange(touches_of_this_thread, &in)} {}
  ~noting_touches() { touches_of_this_thread = before_; }
  noting_touches(const noting_touches&) = delete;
  noting_touches& operator=(const noting_touches&) = delete;

 private:
  touch_log* before_;
};

}  // namespace reprise
