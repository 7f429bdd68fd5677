// What a trace_log keeps under its lock, and how a call is put down in it. For this room's .cpp
// files: tracing.cpp fills it in.
#pragma once

#include <cstdint>
#include <mutex>
#include <source_location>
#include <thread>
#include <unordered_map>
#include <utility>

#include "reprise/base/mutex.hpp"
#include "reprise/trace/trace_numbers.hpp"
#include "reprise/trace/tracing.hpp"

namespace reprise {

class trace_log::state {
 public:
  explicit state(std::size_t most_calls) : most_calls_{most_calls} {}

  void name(const device_traits& device) {
    const std::lock_guard lock{guard_};
    made_.device = device.name;
    made_.bodies = device.bodies;
  }

  // Fills in what a call names or gave, by numbers.
  template <class Note>
  void note(traced_call& call, Note&& fill_in) {
    const std::lock_guard lock{guard_};
    fill_in(call, numbers_);
  }

  // A call that finds no memory to be written down in is left out, like those of a full log.
  void add(traced_call&& call) noexcept {
    const std::lock_guard lock{guard_};
    if (made_.calls.size() >= most_calls_) {
      ++made_.left_out;
      return;
    }
    try {
      const auto next = static_cast<std::uint32_t>(threads_.size() + 1);
      call.thread = threads_.try_emplace(std::this_thread::get_id(), next).first->second;
      made_.calls.push_back(std::move(call));
    } catch (...) {
      close();
    }
  }

  // A call that ends something: placed before it is made, and it cannot fail.
  template <class Note>
  void add_ending(call_kind kind, Note&& fill_in) noexcept {
    traced_call call;
    call.kind = kind;
    try {
      note(call, fill_in);
    } catch (...) {
      const std::lock_guard lock{guard_};
      close();
      return;
    }
    add(std::move(call));
  }

  trace so_far() const {
    const std::lock_guard lock{guard_};
    return made_;
  }

 private:
  // Something is missing from here on, so nothing later could be made again as it was.
  void close() {
    most_calls_ = made_.calls.size();
    ++made_.left_out;
  }

  mutable mutex guard_;
  std::size_t most_calls_;
  trace made_;
  trace_numbers numbers_;
  std::unordered_map<std::thread::id, std::uint32_t> threads_;
};

traced_call begun(call_kind kind, std::source_location from);

traced_work renamed(const work& what, device_kind bodies, trace_numbers& numbers);

}  // namespace reprise
