// A checkpointed span of a network: run forward without keeping its activations, and once more
// just before its backward.
//
//   checkpoint span{"block 3", {&noise}};
//   y = span.forward([&] { return block(x); });          // tickets are dropped with what it keeps
//   span.recompute([&] { return block(x); });            // the same calls, the same random numbers
//
// It remembers where its last forward began to draw; forwards that are pending together have one
// object each. The recompute takes the
// random numbers of the forward and leaves the counters, and the state that the ops declare, as it
// found them. Both run in a region of the label. One thread at a time.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/grad/scoped.hpp"
#include "reprise/replay/philox_counter.hpp"

namespace reprise {

// While it lives, forwards of this thread leave the state that their ops declare as it was.
class state_left_alone {
 public:
  state_left_alone() noexcept;
  ~state_left_alone();
  state_left_alone(const state_left_alone&) = delete;
  state_left_alone& operator=(const state_left_alone&) = delete;

  static bool is_here() noexcept;
};

class checkpoint {
 public:
  // The counters outlive it.
  explicit checkpoint(std::string label, std::initializer_list<philox_counter*> counters = {})
      : checkpoint{std::move(label), std::span{counters.begin(), counters.size()}} {}
  checkpoint(std::string label, std::span<philox_counter* const> counters)
      : label_{std::move(label)} {
    for (philox_counter* one : counters) counters_.push_back(kept_counter{one});
  }

  template <class F>
  decltype(auto) forward(F&& run) {
    if (is_owed_) refuse("owes the recompute of another forward", "make one for each forward");
    is_owed_ = has_run_ = true;
    const region here{label_};
    for (kept_counter& one : counters_) one.forward = *one.counter;
    return std::forward<F>(run)();
  }
  template <class F>
  decltype(auto) recompute(F&& run) {
    if (!has_run_) refuse("has had no forward", "run that first");
    is_owed_ = false;
    const region here{label_};
    const state_left_alone leaves{};
    const counters_put_back as_they_were{counters_};
    return std::forward<F>(run)();
  }

 private:
  struct kept_counter {
    philox_counter* counter;
    philox_counter forward{0};  // where the forward began
    philox_counter now{0};
  };
  struct counters_put_back {
    explicit counters_put_back(std::vector<kept_counter>& all) : counters{all} {
      for (kept_counter& one : counters) one.now = std::exchange(*one.counter, one.forward);
    }
    ~counters_put_back() {
      for (auto one = counters.rbegin(); one != counters.rend(); ++one) *one->counter = one->now;
    }
    std::vector<kept_counter>& counters;
  };

  [[noreturn]] void refuse(std::string_view has, std::string_view remedy) const;

  std::string label_;
  std::vector<kept_counter> counters_;
  bool has_run_ = false;
  bool is_owed_ = false;
};

}  // namespace reprise
