// What stands behind the ids of a CUDA device, and who owns it. For this room's .cpp files.
//
//   id              is the address of     which holds
//   stream_id       stream_record         the native stream, its capture, pending functions
//   event_id        event_record          the native event, and what it stands for
//   graph_id        graph_record          the template, shared with its executables
//   executable_id   executable_record     the native executable, and what was changed in it
//
// An id is valid from creation to destruction, as api.hpp demands; `none` is found, a dead one is
// not. So no call pays for a lookup or a lock.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "reprise/cuda/graph_body.hpp"
#include "reprise/cuda/host_function.hpp"
#include "reprise/cuda/staging.hpp"
#include "reprise/device/work.hpp"

namespace reprise::cuda {

class capture_state;

// One stream is used by one thread at a time; only `capture` is also touched by the thread that
// ends the capture.
struct stream_record {
  using self_type = std::list<stream_record>::iterator;

  std::string text() const;  // "stream 3 (made at file.cpp:12)"

  cudaStream_t native = nullptr;
  bool borrowed = false;     // somebody else made it, and may capture on it
  bool goes_ahead = false;   // of its priority
  bool forgotten = false;    // destroyed in a capture of somebody else
  std::uint64_t number = 0;  // for people
  std::source_location made_at;
  std::atomic<capture_state*> capture{nullptr};
  // Held while the stream enters a capture, and while another thread records an event on it, which
  // would otherwise break the capture.
  std::mutex entering;
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

  std::shared_ptr<graph_body> body;
  self_type self;
};

// The end of what was enqueued on a stream at some moment, asked for later.
struct passed_mark {
  cudaEvent_t event = nullptr;
  bool recorded = false;  // not yet: the stream was being captured
};

// What set_parameters gave a node, to be given again after a whole update.
struct node_change {
  copy_call copy;
  fill_call fill;
  std::shared_ptr<graph_body> kernel;  // a graph of that launch alone; its nodes hold the arguments
};

struct executable_record {
  using self_type = std::list<executable_record>::iterator;

  cudaGraphExec_t native = nullptr;
  bool borrowed = false;
  std::atomic<std::uint64_t> launched_on{0};  // the number of the stream; 0: never launched

  std::mutex guard;                            // of all below: changes are taken one by one
  bool launched = false;                       // since it was made or made anew
  std::optional<bool> copies_host_memory;      // a copy in it does, once somebody has looked
  std::shared_ptr<const graph_body> original;  // whose nodes name this one's; null when borrowed
  std::shared_ptr<const graph_body> current;   // whose parameters and functions it has
  // Of before an update: launches that are still in flight may call their functions.
  std::vector<std::pair<passed_mark, std::shared_ptr<const graph_body>>> earlier;
  std::map<node_id, node_change> changes;
  std::set<node_id> disabled;
  std::set<node_id> switchable;  // that were asked for once and can be switched
  std::map<node_id, cudaGraphDeviceNode_t> driven;
  kept_owners kept;

  passed_mark last_launch;  // once it was destroyed while a launch could be in flight
  self_type self;
};

// Owns all records of one kind. Destroying CUDA objects inside a capture can break it, so a record
// that is taken while one is open anywhere in the process waits in `doomed`. Lists, because
// splicing neither allocates nor moves a record. Thread safe.
template <class Record>
class shelf {
 public:
  Record& add() {
    return add([](Record&) {});
  }
  // `fill` has its say before others can see the record.
  template <class Fill>
  Record& add(Fill&& fill) {
    std::list<Record> fresh;
    const auto self = fresh.emplace(fresh.end());
    self->self = self;
    fill(*self);
    const std::lock_guard lock{guard_};
    live_.splice(live_.end(), fresh);
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

  // Calls `use` with the first live record that `is` says yes to, which stays alive meanwhile.
  template <class Is, class Use>
  bool with(Is&& is, Use&& use) {
    const std::lock_guard lock{guard_};
    for (Record& record : live_) {
      if (!is(record)) continue;
      use(record);
      return true;
    }
    return false;
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
