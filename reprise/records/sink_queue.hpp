// One sink behind a bounded queue, with a thread of its own: nobody who hands records over waits
// for a disk or a network, unless the queue is full and waiting is what was chosen.
//
// All calls are safe from any thread; close() and the destructor come last. Records are delivered
// in the order in which they were handed over. At rest delivered + lost = published: whatever
// happens, each record is counted as one of the two, once. Cost of publish: one copy of the bytes
// and one lock; of push: the lock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include "reprise/records/queue_clock.hpp"
#include "reprise/records/record_batch.hpp"
#include "reprise/records/record_sink.hpp"
#include "reprise/records/sink_counts.hpp"

namespace reprise {

enum class when_full {
  wait,  // for room, no longer than wait_limit_us; what finds none then is lost
  drop,  // lost at once
};

enum class when_lost {
  raise,  // the next publish or flush throws sink_error, once, and takes nothing
  count,  // counted and told by close() only
};

struct sink_queue_options {
  std::string name = "sink";          // in counts, metrics and lines for people
  std::size_t most_records = 65'536;  // that wait; one hand-over alone may be larger
  std::size_t most_bytes = 64U << 20;
  std::size_t batch_records = 4'096;  // a batch goes out once it is so large, ...
  std::size_t batch_bytes = 4U << 20;
  std::int64_t age_limit_us = 200'000;  // ... or once its first record has waited so long
  when_full full = when_full::wait;
  std::int64_t wait_limit_us = 10'000'000;
  int attempts = 5;                      // of a batch
  std::int64_t first_pause_us = 50'000;  // after the first that failed, then twice as long
  std::int64_t longest_pause_us = 5'000'000;
  when_lost loss = when_lost::raise;
  queue_clock clock = steady_queue_clock();
};

class sink_queue {
 public:
  // Opens the sink on this thread; what open() throws passes through. Throws usage_error where a
  // bound is 0 or a time negative.
  sink_queue(std::unique_ptr<record_sink> sink, std::string_view run,
             sink_queue_options options = {});
  // Closes, and reports what close() would have thrown to the error handler.
  ~sink_queue();
  sink_queue(const sink_queue&) = delete;
  sink_queue& operator=(const sink_queue&) = delete;

  // Takes all of them or none. False: none, and they are counted as lost. Throws usage_error after
  // close() and for records that break their schema; sink_error as when_lost says. Where it throws,
  // nothing was taken and nothing counted.
  bool publish(std::span<const tap_record> records);
  bool push(std::shared_ptr<const record_batch> batch);
  // push() that never waits for room: false, and nothing counted, where there is none.
  bool push_if_room(const std::shared_ptr<const record_batch>& batch);

  // Returns once all that was handed over before has reached the sink or is counted as lost, and
  // the sink has flushed. Throws sink_error as when_lost says.
  void flush();
  // The same for the records of one request.
  void await_request(std::uint64_t request);

  // Delivers what waits, flushes, closes the sink and ends the thread. Throws sink_error, one line
  // with counts per point, where a record was lost or the sink could not flush or close. A second
  // call does nothing.
  void close();

  sink_counts counts() const;
  const std::string& name() const noexcept { return options_.name; }

 private:
  struct chunk {
    std::shared_ptr<const record_batch> batch;
    std::size_t begin;  // records before it are on their way
    std::int64_t at_us;
  };
  struct outgoing;

  void raise_what_was_lost();
  void refuse_if_closed() const;
  bool has_room_for(const record_batch& batch) const;
  bool wait_for_room(std::unique_lock<std::mutex>& held, const record_batch& batch);
  void take(std::shared_ptr<const record_batch> batch);
  void lose(std::span<const tap_record> records, const std::string& why);
  void flush_up_to(std::unique_lock<std::mutex>& held, std::uint64_t handed);

  void work();
  bool batch_is_due() const;
  outgoing gather();
  void deliver_next(std::unique_lock<std::mutex>& held);
  void settle(std::span<const tap_record> records);
  void flush_sink(std::unique_lock<std::mutex>& held);
  void close_sink() noexcept;
  void pause(std::int64_t pause_us);

  sink_queue_options options_;
  std::unique_ptr<record_sink> sink_;  // the thread's alone, once it runs

  mutable std::mutex guard_;  // of all below
  std::condition_variable changed_;
  std::deque<chunk> chunks_;
  std::size_t in_chunks_ = 0;  // records that no batch has taken yet
  std::size_t bytes_in_chunks_ = 0;
  std::uint64_t handed_ = 0;   // records taken into the queue, ever
  std::uint64_t settled_ = 0;  // of those, delivered or lost; the first ones
  std::unordered_map<std::uint64_t, std::uint64_t> last_of_;  // request to handed_ after its last
  std::uint64_t flush_up_to_ = 0;
  std::uint64_t flushes_asked_ = 0;
  std::uint64_t flushes_done_ = 0;
  int waiting_for_room_ = 0;
  bool for_good_ = false;  // the sink takes nothing any more
  bool closing_ = false;
  bool closed_ = false;
  std::string to_raise_;
  std::string close_failed_;
  sink_counts counts_;

  std::thread worker_;
};

}  // namespace reprise
