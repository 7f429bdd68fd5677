#include "reprise/tap/tap_observer.hpp"

#include <utility>

namespace reprise {

void tap_observer::on_begin(step_scope& run) {
  const stream_ref on = run;
  one_run now;
  if (on.capturing()) {
    now.captured = std::make_shared<producers>(core_);
    now.branch = std::make_unique<producer_branch>(*core_, run);
  } else {
    now.eager = eager_.begin(run.inputs().run);
  }
  running_.push_back(std::move(now));
}

void tap_observer::on_mark(step_scope& run, point where, const tensor_ref& what) {
  if (running_.empty()) return;
  std::optional<tapped_point> one = core_->tapped(where, what);
  if (!one) return;
  const one_run& now = running_.back();
  one->enabled = core_->is_enabled(*one, now.eager.gate);
  if (now.captured) {
    now.captured->add(run, *now.branch, *one, what);
  } else if (one->enabled) {
    eager_.publish(run, now.eager, *one, what);
  }
}

std::shared_ptr<recorded_marks> tap_observer::on_end(step_scope& run) {
  one_run& done = running_.back();
  if (done.captured) {  // may throw: the run is still there to be abandoned
    done.captured->end(run, *done.branch);
    done.branch->join();
  }
  std::shared_ptr<recorded_marks> left = std::move(done.captured);
  running_.pop_back();
  return left;
}

}  // namespace reprise
