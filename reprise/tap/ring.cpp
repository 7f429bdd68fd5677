#include "reprise/tap/ring.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/tap/publication_protocol.hpp"

namespace reprise {

ring_account::ring_account(std::uint64_t capacity, std::uint64_t slots)
    : capacity_{capacity}, slots_{slots} {
  if (capacity == 0 || capacity % payload_alignment != 0) {
    throw usage_error{fmt::format("a ring has {} bytes; give it a multiple of {}, and some",
                                  capacity, payload_alignment)};
  }
  if (slots == 0) throw usage_error{"a ring has no slots for publications; give it at least 1"};
}

room ring_account::room_for(std::uint64_t bytes, std::uint64_t publications) const {
  if (bytes > capacity_) return room::never_fits;
  if (publications > slots_ && !REPRISE_MUTANT(slots_are_not_looked_at)) return room::never_fits;
  const bool bytes_fit = head_ - tail_ + bytes <= capacity_;
  const bool words_fit =
      next_ - freed_ + publications <= slots_ || REPRISE_MUTANT(slots_are_not_looked_at);
  return bytes_fit && words_fit ? room::fits : room::fits_after_flush;
}

void ring_account::promise(std::uint64_t bytes, std::uint64_t publications) {
  head_ += bytes;
  next_ += publications;
}

bool ring_account::withdraw(std::uint64_t bytes, std::uint64_t publications, std::uint64_t head,
                            std::uint64_t next) {
  if (head_ != head + bytes || next_ != next + publications) return false;
  head_ = head;
  next_ = next;
  return true;
}

void ring_account::give_back(std::uint64_t bytes, std::uint64_t publications) {
  if (bytes > head_ - tail_ || publications > next_ - freed_) {
    throw error{fmt::format(
        "the ring is given back {} bytes and {} publications, and only {} and {} are promised; "
        "its account is wrong, and nothing was changed",
        bytes, publications, head_ - tail_, next_ - freed_)};
  }
  tail_ += bytes;
  freed_ += publications;
}

ring_memory::ring_memory(pool& from, stream_ref stream, std::uint64_t capacity, std::uint64_t slots)
    : bytes{block::fresh(from, capacity, stream)}, publications{stream.device(), slots} {
  std::ranges::fill(publications.data(), publications.data() + slots, std::uint64_t{0});
}

view<std::uint8_t> ring_memory::payload() const {
  return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.bytes()};
}

std::uint64_t ring_memory::look(std::uint64_t slot) const {
  return std::atomic_ref{publications.data()[slot]}.load(published_with.look);
}

void ring_memory::clear(std::uint64_t slot) const {
  std::atomic_ref{publications.data()[slot]}.store(0, std::memory_order_relaxed);
}

const std::byte* ring_memory::place_of(std::uint64_t slot) const {
  return reinterpret_cast<const std::byte*>(publications.data() + slot);
}

}  // namespace reprise
