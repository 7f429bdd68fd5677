// The numbers by which a trace calls handles and memory, in order of appearance. For this
// room's .cpp files.
//
// A handle that is born gets a number of its own, though the device may have used the value before;
// one that was never seen to be born gets one when it first appears. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>

#include "reprise/device/node.hpp"
#include "reprise/trace/trace.hpp"

namespace reprise {

template <class Id>
class handle_numbers {
 public:
  Id born(Id handle) {
    if (handle == Id::none) return Id::none;
    return numbers_[handle] = Id{++last_};
  }
  Id of(Id handle) {
    if (handle == Id::none) return Id::none;
    const auto [at, fresh] = numbers_.try_emplace(handle, Id::none);
    if (fresh) at->second = Id{++last_};
    return at->second;
  }

 private:
  std::unordered_map<Id, Id> numbers_;
  std::uint64_t last_ = 0;
};

// Whether an address in a block that was released still means that block.
enum class released_memory : std::uint8_t {
  names_its_block,  // a kernel reads no memory of the host, so it uses what was released
  may_be_the_hosts,
};

class memory_numbers {
 public:
  block_number born(const std::byte* begin, std::size_t bytes, memory_kind kind);
  block_number released(const std::byte* begin);
  traced_range of(const void* begin, std::size_t bytes, released_memory meaning);

 private:
  struct stretch {
    std::uint64_t number = 0;
    std::size_t bytes = 0;
    memory_kind kind = memory_kind::device;
    bool live = true;
  };
  using stretches = std::map<const std::byte*, stretch>;

  static void forget_overlapped(stretches& all, const std::byte* begin, std::size_t bytes);
  // Where the bytes begin, if they begin in one of these.
  static stretches::const_iterator holding(const stretches& all, const std::byte* begin,
                                           std::size_t bytes);

  stretches blocks_;
  stretches host_;
  std::uint64_t last_block_ = 0;
  std::uint64_t last_host_ = 0;
};

class place_numbers {
 public:
  place_number of(const capture_place& place);

 private:
  std::map<std::tuple<std::uint64_t, std::size_t, std::size_t>, place_number> numbers_;
};

struct trace_numbers {
  handle_numbers<stream_id> streams;
  handle_numbers<event_id> events;
  handle_numbers<graph_id> graphs;
  handle_numbers<executable_id> executables;
  handle_numbers<node_id> nodes;
  place_numbers places;
  memory_numbers memory;
};

}  // namespace reprise
