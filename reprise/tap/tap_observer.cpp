#include "reprise/tap/tap_observer.hpp"

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/tap/launch_producer.hpp"

namespace reprise {

void tap_observer::on_begin(step_scope& run) {
  const stream_ref on = run;
  one_run now;
  if (on.capturing()) {
    now.captured = std::make_shared<producers>(core_);
    now.branch = std::make_unique<producer_branch>(*core_, run);
  } else {
    now.requests.assign(core_->requests().begin(), core_->requests().end());
    now.replay = run.inputs().run;
    now.gate = core_->gate();
    now.step = core_->begin_step();
  }
  running_.push_back(std::move(now));
}

void tap_observer::on_mark(step_scope& run, point where, const tensor_ref& what) {
  if (running_.empty()) return;
  std::optional<tapped_point> one = core_->tapped(where, what);
  if (!one) return;
  const one_run& now = running_.back();
  one->enabled = core_->is_enabled(*one, now.gate);
  if (now.captured) {
    now.captured->add(run, *now.branch, *one, what);
  } else if (one->enabled) {
    publish(run, now, *one, what);
  }
}

std::shared_ptr<recorded_marks> tap_observer::on_end(step_scope& run) {
  one_run& done = running_.back();
  if (done.captured) {  // may throw: the run is still there to be abandoned
    done.captured->end(run, *done.branch);
    done.branch->join(run);
  }
  std::shared_ptr<recorded_marks> left = std::move(done.captured);
  running_.pop_back();
  return left;
}

// Made once; fresh memory, which every stream may use.
void tap_observer::make_eager_words(step_scope& run) {
  if (words_.bytes() != 0) return;
  const std::size_t words = descriptor_words + 1 + 2 * core_->options.most_runs;
  words_ = block::fresh(core_->memory, words * sizeof(std::uint64_t), core_->side);
  taken_ = block::fresh(core_->memory, sizeof(std::uint64_t), core_->side);
  fill(run,
       write<std::uint8_t>{view<std::uint8_t>{reinterpret_cast<std::uint8_t*>(taken_.data()),
                                              sizeof(std::uint64_t)}},
       std::uint8_t{0});
}

void tap_observer::publish(step_scope& run, const one_run& now, const tapped_point& one,
                           const tensor_ref& what) {
  const asked_room asked = core_->ask({&one, 1}, now.requests);
  if (asked.is == asked_room::answer::never) return take_directly(run, now, one, what);
  if (asked.promised == nullptr) return;
  flight& promised = *asked.promised;
  const stream_ref on = run;
  try {
    order_.enter(on, std::source_location::current());
    make_eager_words(run);
    const view<std::uint64_t> words{reinterpret_cast<std::uint64_t*>(words_.data()),
                                    words_.bytes() / sizeof(std::uint64_t)};
    promised.plan.write(promised.words.first(words.size()), 1, core_->all.account(),
                        static_cast<std::uint64_t>(now.replay));
    upload_words(run, promised.words.data(), promised.plan.words(1), words);
    const view<std::uint64_t> taken{reinterpret_cast<std::uint64_t*>(taken_.data()), 1};
    launch_producer(run, *core_->ring, one, what, words, taken, 0);
    launch_publisher(run, *core_->ring, words, taken);
  } catch (...) {
    on.synchronize();
    core_->withdraw(promised);
    throw;
  }
  core_->told_plan();
  core_->launched(promised, on, now.step, now.replay);
}

void tap_observer::take_directly(step_scope& run, const one_run& now, const tapped_point& one,
                                 const tensor_ref& what) {
  core_->never_fits("an eager step", {&one, 1});  // refused, unless that is allowed
  std::vector<std::byte> bytes(what.bytes());
  copy_bytes(run, what.data, bytes.data(), bytes.size());
  std::uint64_t most = bytes.size();
  if (const std::int64_t* const count = one.rows.count()) {
    std::int64_t rows = 0;
    copy_bytes(run, reinterpret_cast<const std::byte*>(count), reinterpret_cast<std::byte*>(&rows),
               sizeof rows);
    const stream_ref on = run;
    on.synchronize();
    most = static_cast<std::uint64_t>(std::clamp<std::int64_t>(rows, 0, one.source_rows)) *
           one.row_bytes;
  }
  const stream_ref on = run;
  on.synchronize();
  core_->deliver_directly(one, now.requests, now.step, now.replay, std::move(bytes), most);
}

}  // namespace reprise
