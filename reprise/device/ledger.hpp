// Who holds memory of a device: pools by label, pinned blocks by address, executables by their
// nodes; and which captures have memory of a pool. Exact, but for what the driver holds.
//
// For this room's .cpp files; memory_report.hpp makes a table of it for people. Thread safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/base/mutex.hpp"
#include "reprise/device/api.hpp"
#include "reprise/device/device.hpp"

namespace reprise {

class pool_state;

// Page-locked memory, shared by its owner and by graphs whose works touch it.
class pinned_memory {
 public:
  pinned_memory(device_state& device, std::size_t bytes, std::source_location from);
  ~pinned_memory();
  pinned_memory(const pinned_memory&) = delete;
  pinned_memory& operator=(const pinned_memory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  device_state& device_;
  std::size_t bytes_;
  std::byte* data_;
};

// Alive while a graph of one capture, or an executable of it, may still run.
struct capture_token {};

class memory_ledger {
 public:
  std::size_t pinned_bytes() const { return pinned_bytes_; }
  std::size_t executables() const { return executables_; }
  std::size_t executable_nodes() const { return executable_nodes_; }

  void add(const std::shared_ptr<pinned_memory>& memory);
  void remove(const pinned_memory& memory) noexcept;
  // The block that holds this address; null: none of ours.
  std::shared_ptr<const pinned_memory> find_pinned(const void* address) const;

  void add(const std::shared_ptr<const pool_state>& pool);
  void remove(const pool_state* pool) noexcept;
  std::vector<std::shared_ptr<const pool_state>> pools() const;

  void add_executable(std::size_t nodes) noexcept {
    ++executables_;
    executable_nodes_ += nodes;
  }
  void remove_executable(std::size_t nodes) noexcept {
    if (REPRISE_MUTANT(executable_that_is_gone_is_counted)) return;
    --executables_;
    executable_nodes_ -= nodes;
  }

  // The token of the capture that the stream is in, held by its graph from now on.
  std::shared_ptr<const capture_token> token_of(stream_ref captured);

  // The device is closing: what is released later stays for the process.
  void close() noexcept { closed_ = true; }
  bool closed() const noexcept { return closed_; }

 private:
  std::atomic<std::size_t> pinned_bytes_{0};
  std::atomic<std::size_t> executables_{0};
  std::atomic<std::size_t> executable_nodes_{0};
  std::atomic<bool> closed_{false};

  mutable mutex guard_;  // of all below
  std::map<const std::byte*, std::weak_ptr<pinned_memory>> pinned_;
  std::map<const pool_state*, std::weak_ptr<const pool_state>> pools_;
  std::map<std::uint64_t, std::weak_ptr<const capture_token>> tokens_;  // by capture number
};

// Calls `keep` with the owner of each pinned block that the work touches: a replay reads it.
template <class Keep>
void each_pinned(device_ref device, const work& what, Keep&& keep) {
  const memory_ledger& ledger = *device.state().ledger;
  if (ledger.pinned_bytes() == 0) return;
  for (const access& touched : what.accesses) {
    if (auto owner = ledger.find_pinned(touched.begin)) keep(std::move(owner));
  }
}

}  // namespace reprise
