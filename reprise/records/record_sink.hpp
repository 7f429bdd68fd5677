// Where records go: the interface of every sink, and how one says that it could not take them.
//
// Whoever writes a sink writes these four calls and no threads: each sink stands behind a
// sink_queue, which calls `open` on the thread that makes the queue and all else on a thread of its
// own, one call at a time. Sinks are opened by name in open_sink.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/records/tap_record.hpp"

namespace reprise {

class record_sink {
 public:
  virtual ~record_sink() = default;

  // Once, first. `run` is for people: the name of what is recorded. Throws usage_error where the
  // sink cannot be used at all; nothing else is called then.
  virtual void open(std::string_view run) = 0;

  // Takes all records, or none, and says so by throwing; sink_error can say that it took the first
  // few. What was taken is the sink's to keep: it is never handed over again.
  virtual void write(std::span<const tap_record> records) = 0;

  // What was taken so far is where a reader finds it when this returns.
  virtual void flush() = 0;

  // Once, last; also after errors.
  virtual void close() = 0;

  // How many records of this sink were lost so far: before a flush or close by which it has
  // changed, for sinks that tell their readers. Throws nothing.
  virtual void note_lost(std::uint64_t /*records*/) {}
};

enum class sink_trouble {
  records,   // these records, or just now: tried again, then with fewer of them at a time
  away,      // nobody answers: tried again, with all of them or not at all
  for_good,  // no later call can succeed
};

// What `write` or `flush` throws. Any other exception counts as trouble with the records.
class sink_error : public error {
 public:
  sink_error(sink_trouble trouble, const std::string& line, std::size_t taken = 0)
      : error{line}, trouble_{trouble}, taken_{taken} {}

  sink_trouble trouble() const noexcept { return trouble_; }
  std::size_t taken() const noexcept {
    return taken_;
  }  // of the records of this call, from the front

 private:
  sink_trouble trouble_;
  std::size_t taken_;
};

}  // namespace reprise
