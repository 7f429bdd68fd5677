// Devices, streams and events: owning types over the seam, and their borrowed forms.
//
// A device outlives everything made from it; its close reports what is still held. No default
// stream exists. Streams and events are cheap handles: move-only owners, copyable `_ref`s.
// Threads: a device may be used from any thread, one stream from one thread at a time.
#pragma once

#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <source_location>
#include <span>
#include <string_view>
#include <unordered_set>

#include "reprise/base/ids.hpp"
#include "reprise/base/mutex.hpp"
#include "reprise/device/api.hpp"

namespace reprise {

class kernel_table;  // kernel/registry.hpp; the device carries the pointer, so a launch is one load
class launch_gate;   // gate.hpp
class memory_ledger;  // ledger.hpp
class freed_memory;   // freed_memory.hpp
class slab_store;     // slab_store.hpp
class stream_ref;

// Shared by all that was made from one device. Internal to this room and to kernel/.
struct device_state {
  device_state(std::unique_ptr<device_api> implementation,
               std::shared_ptr<const kernel_table> kernels);
  ~device_state();

  bool is_live(stream_id stream) const;
  // A stream that somebody else owns is live until the device closes.
  void adopt(stream_id borrowed);
  void release(stream_id borrowed);
  // A live stream that is being captured. False where the device cannot say.
  bool is_captured(stream_id stream) noexcept;
  // Orders what is enqueued on `after` from now on after the work of another stream. False where
  // that cannot be: the other is being captured or destroyed. A destroyed one has waited already.
  bool order_after(stream_id before, stream_ref after, std::source_location place);
  // The host waits for all work of the streams; false where one cannot be waited for now.
  bool wait_for(const std::set<stream_id>& streams);

  std::shared_ptr<const kernel_table> table;
  std::unique_ptr<slab_store> slabs;
  std::unique_ptr<memory_ledger> ledger;
  std::unique_ptr<freed_memory> freed;
  std::atomic<launch_gate*> gate{nullptr};
  std::atomic<int> open_captures{0};

  mutable mutex streams_guard;
  std::unordered_set<stream_id> live_streams;        // under streams_guard
  std::unordered_set<stream_id> borrowed_streams;    // likewise
  std::unordered_multiset<stream_id> dying_streams;  // likewise: their work may still run

  std::unique_ptr<device_api>
      api;  // the last, so it goes first: what it closes asks all the others
};

class device_ref {
 public:
  explicit device_ref(device_state& state) : state_{&state} {}

  const device_traits& traits() const { return state_->api->traits(); }
  std::string_view name() const { return traits().name; }
  device_kind bodies() const { return traits().bodies; }
  memory_figures memory(std::source_location from = std::source_location::current()) const;
  std::size_t pinned_bytes() const;

  // Returns slabs that no pool leases to the device. May synchronise; never call it on a hot path.
  void trim() const;

  // Asked before each launch of an executable; null takes it off. It outlives its time here.
  // Returns the one that was there before.
  launch_gate* set_gate(launch_gate* gate) const;

  device_api& api() const { return *state_->api; }
  const kernel_table* kernels() const { return state_->table.get(); }
  device_state& state() const { return *state_; }

  bool operator==(const device_ref&) const = default;

 private:
  device_state* state_;
};

class device {
 public:
  explicit device(std::unique_ptr<device_api> implementation,
                  std::shared_ptr<const kernel_table> kernels = nullptr);

  operator device_ref() const { return device_ref{*state_}; }
  std::string_view name() const { return device_ref{*state_}.name(); }

 private:
  std::unique_ptr<device_state> state_;
};

class stream_ref {
 public:
  stream_ref(device_ref device, stream_id id) : device_{device}, id_{id} {}

  device_ref device() const { return device_; }
  stream_id id() const { return id_; }
  // Waits until all work enqueued so far is done. Refused inside a capture.
  void synchronize(std::source_location from = std::source_location::current()) const;
  bool capturing() const { return device_.api().capturing(id_); }

  bool operator==(const stream_ref&) const = default;

 private:
  device_ref device_;
  stream_id id_;
};

// In order, non-blocking. Its destructor waits for its work.
class stream {
 public:
  explicit stream(device_ref device, std::source_location from = std::source_location::current());
  stream(device_ref device, stream_priority priority,
         std::source_location from = std::source_location::current());
  stream(stream&& other) noexcept;
  stream& operator=(stream&& other) noexcept;
  ~stream();

  operator stream_ref() const { return {device_, id_}; }
  device_ref device() const { return device_; }
  void synchronize(std::source_location from = std::source_location::current()) const;

 private:
  device_ref device_;
  stream_id id_;
};

// Orders work across streams. Waiting for an event that was never recorded is a no-op.
class event {
 public:
  explicit event(device_ref device, std::source_location from = std::source_location::current());
  event(event&& other) noexcept;
  event& operator=(event&& other) noexcept;
  ~event();

  void record(stream_ref on, std::source_location from = std::source_location::current());
  // Unless the stream is being captured; false then. For other threads than the stream's.
  bool record_outside(stream_id on, std::source_location from = std::source_location::current());
  void wait(stream_ref on, std::source_location from = std::source_location::current()) const;
  bool finished(std::source_location from = std::source_location::current()) const;
  void synchronize(std::source_location from = std::source_location::current()) const;

 private:
  void enqueue(stream_ref on, work_kind kind, std::source_location from) const;

  device_ref device_;
  event_id id_;
};

// A lender of device scratch for kernels that need a workspace; a step's run is one.
struct workspace_ref {
  std::span<std::byte> (*take)(void* owner, std::size_t bytes) = nullptr;
  void* owner = nullptr;
};

// How a step's run takes a break (step_scope::eagerly): `run` is called now and at each replay.
struct break_ref {
  void (*eagerly)(void* owner, std::string_view why,
                  const std::function<void(stream_ref)>& run) = nullptr;
  void* owner = nullptr;
};

// Where work goes and which line sent it there. Made implicitly at each call, from a stream or from
// a step's run, which lends workspace and takes breaks too.
struct site {
  template <std::convertible_to<stream_ref> S>
  site(const S& s, std::source_location at = std::source_location::current())
      : stream{static_cast<stream_ref>(s)}, place{at} {
    if constexpr (requires { s.workspace(); }) workspace = s.workspace();
    if constexpr (requires { s.breaks(); }) breaks = s.breaks();
  }

  stream_ref stream;
  std::source_location place;
  workspace_ref workspace;
  break_ref breaks;
};

}  // namespace reprise
