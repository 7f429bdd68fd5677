// What stands behind the ids of a CUDA device, and who owns it. For this room's .cpp files.
//
//   id              is the address of     which holds
//   stream_id       stream_record         the native stream, the capture it is in, pending
//   functions event_id        event_record          the native event, and what it stands for
//   graph_id        graph_record          the native template and the host functions it calls
//   executable_id   executable_record     the native executable and the same functions, shared
//
// An id is valid from creation to destruction, as api.hpp demands; `none` is found, a dead one is
// not. So no call pays for a lookup or a lock.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <utility>

#include "reprise/cuda/host_function.hpp"
#include "reprise/cuda/staging.hpp"

namespace reprise::cuda {

class capture_state;

// One stream is used by one thread at a time; only `capture` is also touched by the thread that
// ends the capture.
struct stream_record {
  using self_type = std::list<stream_record>::iterator;

  std::string text() const;  // "stream 3 (made at file.cpp:12)"

  cudaStream_t native = nullptr;
  std::uint64_t number = 0;  // for people
  std::source_location made_at;
  std::atomic<capture_state*> capture{nullptr};
  host_functions pending;  // enqueued eagerly, in order
  staging_ring staging;
  self_type self;
};

// What an event stands for: nothing yet, a point of a stream, or a point of capture number N.
using event_meaning = std::uint64_t;
inline constexpr event_meaning never_recorded = 0;
inline constexpr event_meaning recorded_eagerly = 1;
inline constexpr event_meaning first_capture = 2;

struct event_record {
  using self_type = std::list<event_record>::iterator;

  cudaEvent_t native = nullptr;
  std::atomic<event_meaning> meaning{never_recorded};
  std::atomic<std::uint64_t> recorded_on{0};  // the stream's number
  self_type self;
};

struct graph_record {
  using self_type = std::list<graph_record>::iterator;

  cudaGraph_t native = nullptr;
  std::size_t nodes = 0;
  std::shared_ptr<const host_functions> functions;
  self_type self;
};

struct executable_record {
  using self_type = std::list<executable_record>::iterator;

  cudaGraphExec_t native = nullptr;
  std::shared_ptr<const host_functions> functions;  // freed when graph and executables are gone
  self_type self;
};

// Owns all records of one kind. Destroying CUDA objects inside a capture can break it, so a record
// that is taken while one is open anywhere in the process waits in `doomed`. Lists, because
// splicing neither allocates nor moves a record. Thread safe.
template <class Record>
class shelf {
 public:
  Record& add() {
    const std::lock_guard lock{guard_};
    const auto self = live_.emplace(live_.end());
    self->self = self;
    return *self;
  }

  // The record, to be closed now; or nothing, when `hold()` says that it has to wait.
  template <class Hold>
  std::list<Record> take(Record& record, Hold&& hold) noexcept {
    std::list<Record> taken;
    const std::lock_guard lock{guard_};
    auto& to = hold() ? doomed_ : taken;
    to.splice(to.end(), live_, record.self);
    return taken;
  }

  std::list<Record> take_doomed() noexcept {
    const std::lock_guard lock{guard_};
    return std::exchange(doomed_, {});
  }

  std::list<Record> take_live() noexcept {
    const std::lock_guard lock{guard_};
    return std::exchange(live_, {});
  }

 private:
  std::mutex guard_;
  std::list<Record> live_;
  std::list<Record> doomed_;
};

}  // namespace reprise::cuda
