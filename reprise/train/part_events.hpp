// The events of a run as a part hears them, whichever part it is. For this room's .cpp files: users
// have training_run.
#pragma once

#include <cstdint>
#include <exception>
#include <source_location>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/train/graphed_heads.hpp"
#include "reprise/train/graphed_loss.hpp"
#include "reprise/train/graphed_network.hpp"
#include "reprise/train/run_part.hpp"

namespace reprise {

struct part_events {
  // Calls `does` with the part; nothing where it is missing.
  template <class Does>
  static void with(const run_part& part, Does&& does) {
    std::visit(
        [&](const auto& one) {
          if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(one)>, std::monostate>) {
            if (one != nullptr) does(*one);
          }
        },
        part);
  }
  // The same where the part hears the events of this run.
  template <class Does>
  static void of_run(std::uint64_t run, const run_part& part, Does&& does) {
    with(part, [&](auto& one) {
      if (one.life_.run() == run || REPRISE_MUTANT(foreign_parts_hear_events)) does(one);
    });
  }

  static void take(auto& part, std::uint64_t run) { part.life_.take(run); }
  static std::uint64_t run_of(const auto& part) { return part.life_.run(); }
  // Resets the fields, drains what was recorded and drops it. Throws the first failure, when all is
  // done. Without a recording it calls no device.
  static void clear(auto& part, std::source_location place) { part.clear(place); }
  static void open(auto& part, site at) { part.open(at); }
  static void batch_start(auto& part) { part.batch_start(); }
  static void close(auto& part) { part.life_.close(part.all_counts()); }
  static const std::vector<run_part>& children_of(const graphed_network& part) {
    return part.children_;
  }
};

// Does it with each, whatever fails; the first failure is what it returns.
template <class All, class Does>
std::exception_ptr try_each(All&& all, Does&& does) {
  std::exception_ptr first;
  for (auto&& one : all) {
    try {
      does(one);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
      if (REPRISE_MUTANT(a_failing_part_keeps_the_others)) break;
    }
  }
  return first;
}

}  // namespace reprise
