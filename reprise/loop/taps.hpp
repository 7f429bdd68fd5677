// Taps: what each step of a loop gave, by name, copied to host memory to be compared.
//
// Outputs are tapped however a step ran. Marks in bodies are tapped by an observer, and steps that
// are observed run eagerly. The host waits for each step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/loop/loop.hpp"
#include "reprise/loop/runner.hpp"

namespace reprise {

struct tap {
  std::string name;  // an output's, or "kind layer" of a mark
  dtype type = dtype::f32;
  dims shape;
  std::vector<std::byte> bytes;
};

struct tapped_step {
  std::string name;
  std::vector<tap> taps;  // marks as the body passed them, then outputs as they are declared
};

// Copies what is marked; replay_cache::observe takes it. Throws usage_error for a tensor that is
// not contiguous.
class mark_taps : public mark_observer {
 public:
  void on_mark(step_scope& run, point where, const tensor_ref& what) override;

  // Those since the last call. Their bytes are there when the stream of the run has passed.
  std::vector<tap> taken();

 private:
  std::vector<tap> taps_;
};

// The outputs that `what` declares. Throws stale_error when a later run has overwritten them.
std::vector<tap> outputs_of(site at, const step& what, const step_result& done);

// A loop that keeps what every step gives: run it in the place of `of`.
template <step_loop L>
class tapped_loop {
 public:
  using request = typename L::request;
  static constexpr bool may_record = opts_in_to_recording<L>;

  // `at` has the stream that the steps run on. The loop outlives this.
  tapped_loop(site at, L& of, std::shared_ptr<mark_taps> marks = {})
      : at_{at}, of_{&of}, marks_{std::move(marks)} {}

  std::optional<step_call> next(request& r) {
    call_ = of_->next(r);
    return call_;
  }

  void advance(request& r, const step_result& done) {
    tapped_step& now = steps_.emplace_back(tapped_step{call_->what->name(), {}});
    std::vector<tap> outputs = outputs_of(at_, *call_->what, done);
    if (marks_) now.taps = marks_->taken();
    std::ranges::move(outputs, std::back_inserter(now.taps));
    of_->advance(r, done);
  }

  const std::vector<tapped_step>& steps() const { return steps_; }

 private:
  site at_;
  L* of_;
  std::shared_ptr<mark_taps> marks_;
  std::optional<step_call> call_;
  std::vector<tapped_step> steps_;
};

// Runs the request to its end. Marks are tapped when the runner's cache is observed by `marks`.
template <step_loop L>
std::vector<tapped_step> run_tapped(site at, loop_runner& runner, L& loop, typename L::request& r,
                                    std::shared_ptr<mark_taps> marks = {}) {
  tapped_loop<L> tapped{at, loop, std::move(marks)};
  while (runner.step(at, tapped, r)) {
  }
  return tapped.steps();
}

}  // namespace reprise
