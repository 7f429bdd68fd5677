// The ring: payloads in device memory, publication words in pinned memory, and the host's account
// of both.
//
//   payload   bytes [tail, head) are promised or being drained; the byte at position p lies at
//             p % capacity. Positions only grow; each payload is a multiple of 16 bytes.
//   words     publication n uses slot n % slots, under tag n / slots; those in [freed, next) are
//             promised.
//
// Only a plan promises space and only the drain gives it back, in order. ring_account is used under
// the monitor's lock; ring_memory is constant and may outlive its monitor: graphs keep it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/device/memory.hpp"
#include "reprise/tap/plan_words.hpp"

namespace reprise {

enum class room : std::uint8_t { fits, fits_after_flush, never_fits };

class ring_account {
 public:
  // Throws usage_error, naming the limit, where either is nothing that a ring can have.
  ring_account(std::uint64_t capacity, std::uint64_t slots);

  // Whether so much can be promised now, when all before has been drained, or never.
  room room_for(std::uint64_t bytes, std::uint64_t publications) const;
  // The caller has asked for room.
  void promise(std::uint64_t bytes, std::uint64_t publications);
  // The last promise is taken back: nothing was launched. False where it was not the last.
  bool withdraw(std::uint64_t bytes, std::uint64_t publications, std::uint64_t head,
                std::uint64_t next);
  // The oldest promises are drained. Throws error when that is more than was promised: an account
  // that went below nothing would promise space for ever.
  void give_back(std::uint64_t bytes, std::uint64_t publications);

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t slots() const { return slots_; }
  std::uint64_t head() const { return head_; }
  std::uint64_t tail() const { return tail_; }
  std::uint64_t next() const { return next_; }
  std::uint64_t freed() const { return freed_; }
  std::uint64_t slot_of(std::uint64_t sequence) const { return sequence % slots_; }
  std::uint64_t tag_of(std::uint64_t sequence) const {
    return sequence / slots_ % publication::laps;
  }

 private:
  std::uint64_t capacity_;
  std::uint64_t slots_;
  std::uint64_t head_ = 0;
  std::uint64_t tail_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t freed_ = 0;
};

struct ring_memory {
  ring_memory(pool& from, stream_ref stream, std::uint64_t capacity, std::uint64_t slots);

  view<std::uint8_t> payload() const;
  view<std::uint64_t> words() const { return publications.all(); }
  // What the device has said last in this slot, acquired: the bytes behind it are there.
  std::uint64_t look(std::uint64_t slot) const;
  // Forgets a word that no plan stands behind.
  void clear(std::uint64_t slot) const;
  // The word of the slot in host memory, as the seam is told of it.
  const std::byte* place_of(std::uint64_t slot) const;

  block bytes;
  pinned<std::uint64_t> publications;
};

}  // namespace reprise
