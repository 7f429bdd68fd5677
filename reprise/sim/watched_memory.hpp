// The memory of an adversarial device: its blocks, and for every byte of them who wrote it last,
// who has read it since, and whether it may be touched at all.
//
// Released blocks are kept back, so that whatever still touches them is found and not lost in the
// heap; an address is given out again at once or not for long, as the caller says. Poison is 0xff
// in every byte: a NaN in each floating-point type, -1 in each signed one. Used by one thread at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/device/api.hpp"
#include "reprise/sim/clock.hpp"

namespace reprise::sim {

// Who touched memory, for people: "'fill' on stream 2 (file.cpp:12)". `asked`: the number of the
// work, in the order in which works were asked for. `of_a_pool`: what a pool did.
struct party {
  std::string text;
  std::uint64_t asked = 0;
  bool of_a_pool = false;
};
using party_ref = std::shared_ptr<const party>;

struct stamp {
  lane_place at;
  party_ref who;
};

// One piece of a touched range that should not have been touched so.
struct trespass {
  enum class kind : std::uint8_t { race, given_back, unwritten } what;
  std::size_t bytes = 0;
  std::string where;         // "bytes [0, 64) of block 3 (pool 'weights')"
  bool writes = false;       // this work, not the other
  bool never_taken = false;  // the pool had not given it to anybody by then
  party_ref other;           // who it is not ordered with, or who gave the memory back; may be null
  bool other_writes = false;
};

class watched_memory {
 public:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t guard = 4096;  // around each block, so that what strays harms nobody

  watched_memory() = default;
  ~watched_memory();
  watched_memory(const watched_memory&) = delete;
  watched_memory& operator=(const watched_memory&) = delete;

  // `at_once`: an address that was released is preferred. Null when there is no memory.
  std::byte* allocate(memory_kind kind, std::size_t bytes, bool at_once);
  // False when no block begins here.
  bool release(std::byte* begin);

  bool owns(const std::byte* begin, std::size_t bytes) const;
  // In or across a block, live or released, and not wholly in a live one.
  bool strays(const std::byte* begin, std::size_t bytes) const;
  // Of the block that this is in: for an order that does not depend on addresses. 0: in none.
  std::uint64_t number_of(const std::byte* begin) const;
  bool is_pinned(const std::byte* begin) const;
  bool same_block(const std::byte* a, const std::byte* b) const;
  std::size_t held() const { return held_; }
  std::size_t blocks() const { return live_.size(); }
  // Which works wrote these bytes last, as a number that changes when another one does.
  std::uint64_t writers_of(const std::byte* begin, std::size_t bytes) const;
  // Who wrote this byte last, in whatever block it lies; step 0: nobody.
  lane_place writer_of(const std::byte* at) const;

  using teller = std::function<void(const trespass&)>;

  // A work that has this clock, and is `me`, touches these bytes. The first of each kind of
  // trespass is told.
  void touch(const vector_clock& clock, const stamp& me, const std::byte* begin, std::size_t bytes,
             bool writes, const teller& each);
  // A copy: what was unwritten stays so at the target, and its reading is no fault.
  void copy(const vector_clock& clock, const stamp& me, const std::byte* from, const std::byte* to,
            std::size_t bytes, const teller& tell);
  // Whether these bytes are nobody's, and were so before all that comes behind this clock.
  bool is_free(const vector_clock& clock, const std::byte* begin, std::size_t bytes) const;
  // What a pool does with these bytes; they are poisoned.
  void change(const vector_clock& clock, const stamp& me, block_change change, std::byte* begin,
              std::size_t bytes, std::string_view pool, const teller& tell);

 private:
  enum class life : std::uint8_t { idle, freed, unwritten, written };
  struct segment {
    std::size_t end = 0;
    life state = life::unwritten;
    std::shared_ptr<const std::string> pool;  // whose
    party_ref given_back_by;
    stamp written;
    std::vector<stamp> read;
  };
  using segments = std::map<std::size_t, segment>;  // by their begin; without gaps
  struct block {
    std::byte* begin = nullptr;
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::device;
    std::uint64_t number = 0;
    segments parts;
  };
  using block_map = std::map<const std::byte*, block>;

  static block* find(block_map& among, const std::byte* begin, std::size_t bytes);
  const block* find(const std::byte* begin, std::size_t bytes) const;
  template <class See>
  static void for_each_part(const block& of, const std::byte* begin, std::size_t bytes, See&& see);
  static segments::iterator split(block& of, std::size_t at);
  // The segments of exactly these bytes: from one to before the other.
  static std::pair<segments::iterator, segments::iterator> cut_out(block& of,
                                                                   const std::byte* begin,
                                                                   std::size_t bytes);
  static std::string text_of(const block& of, std::size_t first, std::size_t last,
                             const segment& part);
  void forget_oldest();
  void tell_of_no_block(const std::byte* begin, std::size_t bytes, bool writes, const teller& tell);
  static void check_order(const vector_clock& clock, const block& of, std::size_t first,
                          const segment& part, bool writes, const teller& tell);

  block_map live_;
  block_map dead_;
  std::size_t dead_bytes_ = 0;
  std::size_t held_ = 0;
  std::uint64_t numbers_ = 0;
};

}  // namespace reprise::sim
