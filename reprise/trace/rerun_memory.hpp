// The blocks and the host memory of a re-run, and the work that touches them as the trace says. For
// this room's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/trace/rerun.hpp"

namespace reprise {

// What is wrong with a range: nothing, or how a difference says it.
struct range_fault {
  difference_kind kind = difference_kind::dead_memory;
  std::string text;
};

class rerun_memory {
 public:
  // Host memory is made at once, as large as the trace ever uses it, while `most_bytes` last.
  rerun_memory(const trace& what, std::uint64_t most_bytes);

  bool has_room(std::uint64_t bytes) const { return bytes <= left_; }

  void born(block_number number, std::byte* begin, std::uint64_t bytes, memory_kind kind);

  struct ended {
    std::byte* begin = nullptr;  // null: there is nothing to release
    memory_kind kind = memory_kind::device;
    std::string fault;  // empty: it may be released
  };
  ended release(block_number number, std::size_t call);
  // What is left.
  std::vector<ended> release_all();
  // Grows with each release: what was found whole stays whole until then.
  std::uint64_t lives_ended() const { return lives_ended_; }

  std::optional<range_fault> fault_of(const traced_range& range) const;
  // Of a range without fault.
  std::byte* address_of(const traced_range& range) const;

 private:
  struct row {
    std::byte* begin = nullptr;
    std::uint64_t bytes = 0;
    memory_kind kind = memory_kind::device;
    std::size_t released_by = 0;  // a call; 0: it lives
  };
  const row* find(const traced_range& range) const;

  std::uint64_t left_;
  std::uint64_t lives_ended_ = 0;
  std::unordered_map<std::uint64_t, row> blocks_;
  std::unordered_map<std::uint64_t, row> host_;
  std::vector<row> replaced_;  // whose number a wrong trace gave away twice
  std::vector<std::unique_ptr<std::byte[]>> owned_;
};

// One span that a body touches.
struct alignas(16) touch {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;  // of the first, which stands for none: how many follow
  bool writes = false;
};

// A traced work as one that can be enqueued; it borrows from itself, so it stays where it is.
class rerun_work {
 public:
  rerun_work(const traced_work& traced, const rerun_memory& memory, event_id event);
  rerun_work(const rerun_work&) = delete;
  rerun_work& operator=(const rerun_work&) = delete;

  const work& borrow() const { return what_; }

 private:
  std::vector<access> accesses_;
  std::vector<touch> touches_;
  std::function<void()> on_host_;
  std::function<void(void*)> on_stream_;
  work what_;
};

// Everything that a work touches: its accesses, and both sides of a copy.
std::vector<traced_range> ranges_of(const traced_work& what);

}  // namespace reprise
