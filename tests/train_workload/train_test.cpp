// Training in parts that are recorded and replayed has the bits of a plain run beside it, and the
// counts of the plan, whatever the window, the precision and the parts; and what the run promises
// can fail.
#include "workloads/train/train.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <utility>

#include "reprise/device/counting.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/support/observe.hpp"
#include "tests/train_workload/support.hpp"

namespace reprise {
namespace {

using train::train_options;
using train::train_progress;
using train::train_report;
using train::training;

void put(const training& in, view<float> at, float value) {
  copy(in.runs_on(), read<float>{view<const float>{&value, 1}}, write<float>{at.subview(0, 1)});
  in.runs_on().synchronize();
}

const part_counts& counts_of(const train_report& report, const std::string& part) {
  const auto found = std::ranges::find(report.counts.parts, part, &train::counted_part::part);
  return found->counts;
}

class train_on : public ::testing::TestWithParam<std::string> {
 protected:
  train_report run(const train_options& of, const train::window_listener& listen = {}) {
    return test::run_small(opened, of, listen);
  }
  train_report run(const train_options& of, const std::vector<train::epoch>& epochs) {
    return train::run_train(opened, of, test::few_clothes(), epochs);
  }

  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened = open_device(GetParam(), {.threads = 1, .counts = calls});
};

INSTANTIATE_TEST_SUITE_P(devices, train_on, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(train_on, replays_have_the_bits_of_a_plain_run_in_every_window_and_precision) {
  for (const std::int64_t accumulate : {1, 2, 3}) {
    for (const cast_mode casts : {cast_mode::none, cast_mode::bf16}) {
      for (const std::int64_t every : {0, 2}) {
        train_options o = test::small_options();
        o.accumulate = accumulate;
        o.casts = casts;
        o.unlabelled_every = every;
        SCOPED_TRACE(test::told(o));
        test::expect_right(run(o), o);
      }
    }
  }
}

TEST_P(train_on, so_they_have_whichever_parts_are_recorded) {
  for (int parts = 1; parts < 8; ++parts) {
    train_options o = test::small_options();
    o.graphed = {(parts & 1) != 0, (parts & 2) != 0, (parts & 4) != 0};
    SCOPED_TRACE(test::told(o));
    test::expect_right(run(o), o);
  }
}

// Windows of a full, a short and another full micro-batch; one without labels is alone in the last.
const train::epoch mixed{{{0, 8}, {8, 5}, {13, 8}}, {{21, 8}, {29, 3}, {32, 8}}, {{40, 8, false}}};

TEST_P(train_on, short_micro_batches_and_those_without_labels_run_eagerly_and_retire_nothing) {
  const train_report report = run(test::small_options(), std::vector<train::epoch>(2, mixed));
  test::expect_right(report, 6, 2);
  constexpr auto by_key = static_cast<std::size_t>(eager_cause::key);

  const part_counts& trunk = counts_of(report, "trunk");
  EXPECT_EQ(trunk.calls.forward_capture, 1U);
  EXPECT_EQ(trunk.calls.forward_replay, 9U) << "ten full micro-batches";
  EXPECT_EQ(trunk.calls.eager_forward[by_key], 4U);
  EXPECT_EQ(trunk.calls.backward_capture, 1U);
  EXPECT_EQ(trunk.calls.backward_replay, 9U);
  EXPECT_EQ(trunk.replays_inside_windows, 4U) << "the second full one of each window that has one";

  const part_counts& of_class = counts_of(report, "class");
  EXPECT_EQ(of_class.calls.forward_capture, 1U);
  EXPECT_EQ(of_class.calls.forward_replay, 7U) << "eight full ones with labels";
  EXPECT_EQ(of_class.empty_targets, 2U);
  EXPECT_EQ(of_class.calls.backward_replay, 7U);
  EXPECT_EQ(of_class.replays_inside_windows, 4U);

  const part_counts& of_mask = counts_of(report, "mask");
  EXPECT_EQ(of_mask.calls.forward_replay, 9U);
  EXPECT_EQ(of_mask.empty_targets, 0U);
  EXPECT_EQ(of_mask.replays_inside_windows, 4U);

  for (const train::counted_part& one : report.counts.parts) {
    EXPECT_EQ(one.counts.retirements, 0U) << one.part;
  }
}

TEST_P(train_on, a_plain_run_captures_nothing_and_has_the_same_results) {
  train_options o = test::small_options();
  o.verify = false;
  const train_report recorded = run(o);
  o.graphed = {false, false, false};
  const test::calls_since before{*calls};
  const train_report eager = run(o);
  for (const seam_call call : {seam_call::capture, seam_call::instantiate, seam_call::launch}) {
    EXPECT_EQ(before[call], 0U) << name_of(call);
  }
  EXPECT_EQ(eager.failure(), "");
  ASSERT_EQ(eager.epochs.size(), recorded.epochs.size());
  EXPECT_EQ(eager.epochs[1].loss, recorded.epochs[1].loss);
  EXPECT_EQ(eager.epochs[1].validated.loss, recorded.epochs[1].validated.loss);
  EXPECT_FALSE(eager.compared.has_value());
}

// What comes to the masks is infinite at first. The scale is halved after each window that was
// skipped, until it is not.
TEST_P(train_on, windows_that_overflow_are_skipped_in_both_runs) {
  train_options o = test::small_options();
  o.scale = {true, 0x1p126F};
  o.mask_weight = 64;
  const train_report report = run(o);
  test::expect_right(report, o);
  const std::uint64_t skipped = report.epochs[0].overflows + report.epochs[1].overflows;
  EXPECT_GE(skipped, 1U);
  EXPECT_LT(skipped, 6U) << "some were applied";
  EXPECT_EQ(report.scale, std::ldexp(1.0F, 126 - static_cast<int>(skipped)));

  o.scale.dynamic = false;
  const train_report never = run(o);
  test::expect_right(never, o);
  EXPECT_EQ(never.epochs[0].overflows, 3U) << "all of them";
  EXPECT_EQ(never.scale, 0x1p126F);
}

TEST_P(train_on, updates_have_a_rate_that_goes_down) {
  std::vector<float> rates;
  run(test::small_options(),
      [&](const train_progress&, training& t) { rates.push_back(t.optimizer().options().rate); });
  EXPECT_EQ(rates.size(), 6U);
  EXPECT_EQ(rates.front(), 4e-3F);
  EXPECT_TRUE(std::ranges::is_sorted(rates, std::greater{}));
  EXPECT_LT(rates.back(), 1.1e-3F);
}

TEST_P(train_on, seeds_tell_runs_apart) {
  train_options o = test::small_options();
  o.verify = false;
  const float one = run(o).epochs[1].loss;
  EXPECT_EQ(run(o).epochs[1].loss, one);
  o.seed = 6;
  EXPECT_NE(run(o).epochs[1].loss, one);
}

TEST_P(train_on, what_is_changed_behind_its_back_is_found_where_it_was_changed) {
  using change = std::function<void(training&)>;
  const std::vector<std::pair<std::string, change>> changes{
      {"weight 'mask.up.bias', element 0: 0.75 (0x3f400000) is not ",
       [](training& t) {
         put(t, elements_of<float>(t.parameters().at("mask.up.bias").value), 0.75F);
       }},
      {"first moment of 'trunk.first.weight', element 0: ",
       [](training& t) { put(t, t.optimizer().first_moments(), 0.5F); }},
      {"second moment of 'trunk.first.weight', element 0: ",
       [](training& t) { put(t, t.optimizer().second_moments(), 0.5F); }},
      {"average of 'trunk.first.weight', element 0: ",
       [](training& t) { put(t, t.average().values(), 0.5F); }},
      {"running statistics, element 0: ",
       [](training& t) { put(t, t.statistics().first.all(), 0.5F); }},
      {"random numbers drawn: ", [](training& t) { t.draws().advance(4); }},
  };
  for (const auto& [begins, apply] : changes) {
    const train_report report =
        run(test::small_options(), [&](const train_progress& done, training& t) {
          if (done.epoch == 2 && done.window == 1) apply(t);
        });
    const std::string expected = "the run differs from the plain one: epoch 2, window 1: " + begins;
    EXPECT_TRUE(report.failure().starts_with(expected)) << expected << "\n" << report.failure();
    EXPECT_EQ(report.compared->windows, 4U);
  }
}

// The error of the run is the one that is seen, and the parts have let go of all they had recorded.
TEST_P(train_on, a_run_that_throws_ends_its_parts) {
  std::vector<std::string> told;
  const log_sink before = set_log_sink([&](std::string_view line) { told.emplace_back(line); });
  const std::string error = test::message_of<std::runtime_error>([&] {
    run(test::small_options(), [](const train_progress& done, training&) {
      if (done.epoch == 2) throw std::runtime_error{"the listener has had enough"};
    });
  });
  set_log_sink(before);
  EXPECT_EQ(error, "the listener has had enough");
  EXPECT_EQ(told, std::vector<std::string>{});
  EXPECT_EQ(run(test::small_options()).failure(), "") << "another run goes on from nothing";
}

TEST_P(train_on, bad_data_and_bad_options_are_refused_before_anything_runs) {
  train_options o = test::small_options();
  o.data = "/nowhere";
  EXPECT_THROW(train::run_train(opened, o), usage_error);
  o = test::small_options();
  o.subset = 513;
  EXPECT_THROW(train::run_train(opened, o), usage_error);
  o = test::small_options();
  o.accumulate = 0;
  EXPECT_THROW(train::run_train(opened, o), usage_error);
  EXPECT_EQ((*calls)[seam_call::kernel], 0U);
}

TEST(a_train_report, says_what_is_wrong_with_it) {
  train_report report;
  EXPECT_EQ(report.failure(), "");
  report.planned.updates.captured = 1;
  EXPECT_EQ(report.failure(), "calls did not run as planned: updates: captured 0, planned 1");
  report.compared =
      train::run_comparison{4, 1, "epoch 1, window 4: the loss, element 0: 1 is not 2"};
  EXPECT_EQ(
      report.failure(),
      "the run differs from the plain one: epoch 1, window 4: the loss, element 0: 1 is not 2");
}

}  // namespace
}  // namespace reprise
