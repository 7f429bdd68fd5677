// Whatever call of the device fails in a window of micro-batches, for every one of them in turn:
// called again, the window gives the gradients of a plain one, each exactly once; nothing leaks,
// and the next window is as ever. The same for the events around it.
#include "reprise/device/memory_report.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/train/support.hpp"

namespace reprise::test {
namespace {

class struck_run {
 public:
  struck_run(const std::string& spec, gradients returned, int windows)
      : desk_{spec},
        plain_desk_{spec},
        model_{std::in_place, desk_, part_options{.on = true, .returned = returned}},
        run_{std::in_place, model_->parts()} {
    run_->start(desk_.work);
    for (int i = 0; i < windows; ++i) window();
  }

  // True: the n-th call of a window was made, and failed.
  bool strike_a_window(std::uint64_t n) {
    desk_.faults->fail_call(n);
    micro_batches();
    const bool fired = desk_.faults->fired();
    desk_.faults->fail_call(0);
    update();
    return fired;
  }
  // The same of the end of a run.
  bool strike_the_end(std::uint64_t n) {
    desk_.faults->fail_call(n);
    std::string said;
    try {
      run_->end();
    } catch (const error& failed) {
      said = failed.what();
    }
    const bool fired = desk_.faults->fired();
    desk_.faults->fail_call(0);
    EXPECT_TRUE(said.empty() || has(said, "injected fault")) << said;
    for (const part_state state :
         {model_->trunk.state(), model_->heads.state(), model_->loss.state()}) {
      EXPECT_EQ(state, part_state::cleared);
    }
    run_->start(desk_.work);
    return fired;
  }
  // Two micro-batches, and an update of the weights.
  void window() {
    micro_batches();
    update();
  }
  void expect_no_leak() {
    run_.reset();
    model_.reset();
    const memory_report report = report_memory(desk_.opened);
    for (const pool_figures& one : report.pools) {
      EXPECT_EQ(one.used, 0U) << "pool '" << one.label << "'";
    }
    EXPECT_EQ(report.executables, 0U);
    EXPECT_EQ(report.pinned, 0U);
    EXPECT_EQ(desk_.budget.held(), 0U);
  }

 private:
  // What failed is called again.
  void retried(const std::function<void()>& does) {
    try {
      does();
    } catch (const error& failed) {
      EXPECT_TRUE(has(failed.what(), "injected fault")) << failed.what();
      EXPECT_FALSE(stream_ref{desk_.work}.capturing());
      does();
    }
  }
  void micro_batches() {
    for (int i = 0; i < 2; ++i) {
      const micro_batch of{.seed = next_++};
      graphed_model::under_way now;
      made_by seen;
      run_->batch_start();
      retried([&] { now = model_->begin(of); });
      retried([&] { forward(now); });
      retried([&] { model_->compute_loss(now); });
      retried([&] { seen = model_->backward(now); });
      expect_same(seen, plain_.run(of));
    }
    retried([&] { expect_same_weights(model_->own, plain_.own); });
  }
  // One that failed has drawn once or not at all; the one that is called again draws the same.
  void forward(graphed_model::under_way& now) {
    const std::uint64_t from = model_->own.counter.next();
    try {
      model_->forward(now);
    } catch (...) {
      if (!now.trunk) model_->own.counter.set(9, from);
      throw;
    }
  }
  void update() {
    for (weights* const one : {&model_->own, &plain_.own}) {
      one->descend();
      one->set.drop_gradients();
    }
  }

  const reports quiet_;  // of what fails while things are taken down
  training_desk desk_;
  training_desk plain_desk_;  // which nothing strikes
  plain_model plain_{plain_desk_};
  std::optional<graphed_model> model_;
  std::optional<training_run> run_;
  unsigned next_ = 0;
};

// A sanitizer takes fifteen times as long for a walk.
constexpr std::uint64_t steps_at_once = test::sanitized ? 7 : 1;

class failures_of_parts : public training_case {
 protected:
  // Until no call is the n-th any more: every one on the cpu, where gradients are lent; else every
  // third, or seventh; under a sanitizer those that far apart. A card takes a third of a second to
  // open: there it is every 29th.
  void walk(int windows_before, bool strikes_the_end, std::uint64_t at_least) {
    const bool is_sparse = GetParam().starts_with("cuda");
    for (const gradients returned : {gradients::moved, gradients::cloned}) {
      const std::uint64_t stride = is_sparse                       ? 29
                                   : returned == gradients::cloned ? 7 * steps_at_once
                                   : GetParam() == "cpu"           ? 1 * steps_at_once
                                                                   : 3 * steps_at_once;
      std::uint64_t last = 0;
      for (std::uint64_t n = 1;; n += stride) {
        ASSERT_LT(n, 1500U) << "the walk over all calls does not end";
        SCOPED_TRACE("call " + std::to_string(n));
        struck_run now{GetParam(), returned, windows_before};
        const bool fired = strikes_the_end ? now.strike_the_end(n) : now.strike_a_window(n);
        for (int i = 0; i < 2; ++i) now.window();
        now.expect_no_leak();
        if (!fired) break;
        last = n;
        if (HasFailure()) return;
      }
      if (!is_sparse && steps_at_once == 1) {
        EXPECT_GE(last, at_least) << "there are more calls than that";
      }
    }
  }
};

REPRISE_ON_EACH_DEVICE(failures_of_parts);

TEST_P(failures_of_parts, in_the_window_that_is_recorded) {
  walk(0, false, 100);
}
TEST_P(failures_of_parts, in_a_window_that_is_replayed) {
  walk(1, false, 30);
}
TEST_P(failures_of_parts, at_the_end_of_a_run) {
  walk(1, true, 7);
}

}  // namespace
}  // namespace reprise::test
