// What Reprise knows of a capture that is open, beside what CUDA knows: which streams are in it,
// who was joined to whom, and what made it invalid first. For this room's .cpp files.
//
// CUDA says of a broken capture only that it is broken, and of an unjoined fork not which. Here the
// cause is kept, and the streams have names. Calls that cannot be captured are refused before they
// reach CUDA: its own capture then stays whole and ends cleanly, while ours is marked invalid, so
// that a body that swallows the refusal does not get a graph that means something else.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/cuda/graph_body.hpp"
#include "reprise/cuda/records.hpp"

namespace reprise::cuda {

// Thread safe: the streams of one capture may be driven from several threads.
class capture_state {
 public:
  capture_state(stream_record& origin, event_meaning number, std::shared_ptr<graph_body> body,
                unsigned long long foreign = 0)
      : number_{number}, foreign_{foreign}, body_{std::move(body)} {
    branches_.push_back({&origin, clock(1, 0), 0});
  }

  event_meaning number() const { return number_; }
  // CUDA's number of a capture that somebody else began; 0: Reprise began it.
  unsigned long long foreign() const { return foreign_; }
  stream_record& origin() const { return *branches_.front().stream; }
  // Only the thread that began a capture can end it, in every mode but the relaxed one.
  bool began_here() const { return thread_ == std::this_thread::get_id(); }

  // In a capture that somebody else began: what he enqueued so far is no work of ours.
  void pass_over_others(const stream_record& stream);
  // What somebody else's code put behind the tail of the stream since the last work and no graph of
  // ours can hold: "memory allocation"; empty: nothing.
  std::string_view forbidden_at(const stream_record& stream);
  // The stream was given a work, and CUDA has added its nodes: none is an id without nodes.
  node_id add_work(const stream_record& stream, std::string_view label);
  void record(const event_record& event, const stream_record& stream);
  // A stream that somebody else forked, which is found in his capture.
  void join(stream_record& stream);
  // `stream` joins the capture unless it is in it, and is ordered behind the event.
  void wait(const event_record& event, stream_record& stream);

  // Between two questions somebody else may have enqueued work: there each one is a step.
  capture_place place_of(const stream_record& stream);
  bool precedes(const capture_place& earlier, const stream_record& stream) const;

  // Whether streams of both priorities are in it.
  bool of_two_priorities() const;

  // Kept for the graph, whose host nodes hold its address.
  host_function& keep(std::string_view label, const std::function<void()>& function);
  void keep(std::shared_ptr<const void> owner);
  const std::shared_ptr<graph_body>& body() const { return body_; }

  // The first error that made the capture invalid. A suspicion only counts when CUDA breaks the
  // capture and no error explains it: running out of memory beside a capture need not spoil it.
  void fail(std::exception_ptr cause) noexcept;
  void suspect(std::exception_ptr cause) noexcept;
  std::exception_ptr cause() const;
  std::exception_ptr suspicion() const;

  // Streams with work that the origin does not wait for; and all that joined, for the case that
  // CUDA finds one which was not driven through Reprise.
  std::vector<const stream_record*> unjoined() const;
  std::string joined_text() const;

  void forget(const stream_record& stream) noexcept;

  // The streams are no longer captured.
  void release_streams() noexcept;

 private:
  // How many steps of each branch come before a point: a vector clock, by branch. Works are steps,
  // and so are waits, behind which other branches' works come before too.
  using clock = std::vector<std::size_t>;
  struct branch {
    stream_record* stream;
    clock tail;
    std::size_t last_work = 0;  // the step of it
  };

  // Nodes up to the tail of the stream that no work became yet. Under the guard.
  std::vector<cudaGraphNode_t> fresh_at(const stream_record& stream) const;
  std::size_t index_of(const stream_record& stream) const;
  static void merge(clock& into, const clock& from);

  const event_meaning number_;
  const unsigned long long foreign_;
  const std::thread::id thread_ = std::this_thread::get_id();

  mutable std::mutex guard_;      // of all below
  std::vector<branch> branches_;  // the origin first
  std::unordered_map<const event_record*, clock> marks_;
  std::shared_ptr<graph_body> body_;
  node_set known_;  // nodes that works became
  std::exception_ptr cause_;
  std::exception_ptr suspicion_;
};

// The open captures of one device, and how many there are in the process. Thread safe.
class capture_registry {
 public:
  // In any device of the process: CUDA's rules bind the thread, whichever card it captures on.
  static bool any_open() noexcept { return open_in_process.load(std::memory_order_acquire) != 0; }

  capture_state& open(core& shared, stream_record& origin);
  // Beside a capture that somebody else began, with CUDA's number, into `body`. It holds nobody's
  // destruction back: its end is noticed late.
  capture_state& open_beside(stream_record& origin, std::shared_ptr<graph_body> body,
                             unsigned long long number);
  capture_state* find_beside(unsigned long long number);
  // Forgets a stream that dies in such a capture, which closes nothing of its owner's.
  void forget(const stream_record& stream) noexcept;
  // Takes it out. The streams leave it before the process counts one less.
  std::unique_ptr<capture_state> close(const capture_state& ended) noexcept;

  // Calls `use` with the open capture of that number, which cannot end meanwhile; false: none.
  template <class Use>
  bool with(event_meaning number, Use&& use) {
    const std::lock_guard lock{guard_};
    const auto found = open_.find(number);
    if (found == open_.end()) return false;
    use(*found->second);
    return true;
  }

  // To every capture that this thread has open.
  void suspect(const std::exception_ptr& cause) noexcept;

 private:
  static inline std::atomic<int> open_in_process{0};

  capture_state& add(std::unique_ptr<capture_state> fresh, stream_record& origin);

  std::mutex guard_;
  std::map<event_meaning, std::unique_ptr<capture_state>> open_;
};

// A call that cannot be captured fails at once and spoils the capture. The stream is usable after.
[[noreturn]] void refuse(capture_state& capture, const call_place& where, std::string_view why);

// The message of a stored exception.
std::string text_of(const std::exception_ptr& thrown);

}  // namespace reprise::cuda
