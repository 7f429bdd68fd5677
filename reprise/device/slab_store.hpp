// The slabs of one device: pools lease them and give them back; the device sees few allocations.
//
// A slab that comes back stays here until `trim`, because freeing device memory may synchronise the
// whole device. Whoever gives a slab back has seen the last work on it finish. Thread safe.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <source_location>
#include <string>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/base/mutex.hpp"

namespace reprise {

struct device_state;

struct slab {
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
};

// The slabs of a pool that is gone, and the streams whose work on them may still run.
struct retired_slabs {
  std::string pool;
  std::vector<slab> slabs;
  std::set<stream_id> streams;
};

class slab_store {
 public:
  explicit slab_store(device_state& owner) : owner_{owner} {}
  ~slab_store();
  slab_store(const slab_store&) = delete;
  slab_store& operator=(const slab_store&) = delete;

  // At least `bytes`. Before it throws out_of_memory it trims and tries again, but never while a
  // capture is open: freeing inside a capture would break it and hide the cause.
  slab lease(std::size_t bytes, std::source_location from);
  void give_back(slab returned) noexcept;
  // Gives them back when their streams have passed. Waits for that now, or, where a stream is being
  // captured or destroyed and cannot be waited for, when no capture is open. What cannot be waited
  // for at all is kept until the process ends, which is better than reused under running work.
  void retire(retired_slabs gone) noexcept;
  // Waits for what was put off, unless a capture is open.
  void settle() noexcept;
  void trim() noexcept;

  std::size_t leased_bytes() const;
  std::size_t idle_bytes() const;

 private:
  device_state& owner_;
  mutable mutex guard_;
  std::multimap<std::size_t, std::byte*> idle_;  // by size
  std::vector<retired_slabs> put_off_;
  std::size_t leased_ = 0;
  std::size_t idle_bytes_ = 0;
};

}  // namespace reprise
