// Training that is recorded and replayed has the bits of a plain run beside it, and the counts of
// the plan, under each policy, window and cut; and what the run promises can fail.
#include "workloads/memory/memory.hpp"

#include "reprise/device/counting.hpp"
#include "reprise/device/enqueue.hpp"
#include "tests/memory/support.hpp"
#include "tests/support/observe.hpp"

namespace reprise {
namespace {

using memory::memory_options;
using memory::memory_report;
using memory::training;

void put(const training& in, view<float> at, float value) {
  copy(in.runs_on(), read<float>{view<const float>{&value, 1}}, write<float>{at.subview(0, 1)});
  in.runs_on().synchronize();
}

class memory_on : public ::testing::TestWithParam<std::string> {
 protected:
  memory_options options() const { return test::small_options(text.path()); }
  memory_report run(const memory_options& of, const memory::step_listener& listen = {}) {
    return memory::run_memory(opened, of, listen);
  }

  test::text_file text{test::few_lines};
  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened = open_device(GetParam(), {.threads = 1, .counts = calls});
};

INSTANTIATE_TEST_SUITE_P(devices, memory_on, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(memory_on, replays_have_the_bits_of_a_plain_run_under_every_policy_window_and_cut) {
  for (const on_conflict& policy : test::policies()) {
    for (const std::int64_t accumulate : {1, 3}) {
      for (const std::int64_t regions : {1, 4}) {
        memory_options o = options();
        o.conflict = policy;
        o.accumulate = accumulate;
        o.regions = regions;
        o.steps = test::steps_to_run(3);
        SCOPED_TRACE(test::told(o));
        test::expect_right(run(o), o);
      }
    }
  }
}

TEST_P(memory_on, so_they_have_however_memories_are_stored_and_saved) {
  for (const dtype storage : {dtype::f32, dtype::bf16}) {
    for (const saved_rows rows : {saved_rows::as_stored, saved_rows::fp8, saved_rows::int4}) {
      for (const bool wide : {false, true}) {
        memory_options o = options();
        o.storage = storage;
        o.rows = rows;
        o.wide_bank_grad = wide;
        o.layers = 2;
        o.accumulate = 2;
        o.conflict = recompute{};
        SCOPED_TRACE(test::told(o) + ", rows " + std::to_string(static_cast<int>(rows)));
        test::expect_right(run(o), o);
      }
    }
  }
}

// A window of three under two frames: the first frame has two takers, the second one.
TEST_P(memory_on, counts_are_those_of_the_schedule) {
  memory_options o = options();
  o.accumulate = 3;
  o.conflict = slots{2};
  o.steps = 4;
  const memory_report report = run(o);
  ASSERT_EQ(report.counts.ops.size(), 7U) << "embedding, memory, four of the head, loss";
  for (const memory::op_counts& one : report.counts.ops) {
    SCOPED_TRACE(one.op);
    EXPECT_EQ(one.counts.forward_capture, 2U);
    EXPECT_EQ(one.counts.forward_replay, 10U);
    EXPECT_EQ(one.counts.backward_capture, 2U);
    EXPECT_EQ(one.counts.backward_replay, 10U);
    EXPECT_EQ(one.counts.stale_replay, 8U);
    EXPECT_EQ(one.counts.eager_forwards() + one.counts.eager_backwards(), 0U);
  }
  EXPECT_EQ(report.counts.updates.captured, 1U);
  EXPECT_EQ(report.counts.updates.replayed, 3U);
  EXPECT_EQ(report.counts.samples.captured, 1U);
  EXPECT_EQ(report.counts.samples.replayed, 8U) << "four bytes of prompt and six, but the last";
}

TEST_P(memory_on, a_plain_run_captures_nothing_and_has_the_same_losses_and_sample) {
  memory_options o = options();
  o.verify = false;
  const memory_report recorded = run(o);
  o.eager = true;
  const test::calls_since before{*calls};
  const memory_report eager = run(o);
  for (const seam_call call : {seam_call::capture, seam_call::instantiate, seam_call::launch}) {
    EXPECT_EQ(before[call], 0U) << name_of(call);
  }
  EXPECT_EQ(eager.failure(), "");
  EXPECT_EQ(eager.loss_first, recorded.loss_first);
  EXPECT_EQ(eager.loss_last, recorded.loss_last);
  EXPECT_EQ(eager.sample, recorded.sample);
  EXPECT_FALSE(eager.compared.has_value());
}

TEST_P(memory_on, seeds_tell_runs_apart) {
  memory_options o = options();
  o.verify = false;
  const memory_report one = run(o);
  EXPECT_EQ(run(o).loss_last, one.loss_last);
  o.seed = 6;
  EXPECT_NE(run(o).loss_last, one.loss_last);
}

TEST_P(memory_on, a_weight_changed_behind_its_back_is_found_where_it_was_changed) {
  const memory_report report = run(options(), [](std::int64_t done, float, training& trained) {
    if (done != 2) return;
    put(trained, elements_of<float>(trained.parameters().at("layers.0.bank").value), 0.75F);
  });
  EXPECT_TRUE(
      report.failure().starts_with("the run differs from the plain one: step 2: weight "
                                   "'layers.0.bank', element 0: 0.75 (0x3f400000) is not "))
      << report.failure();
  EXPECT_EQ(report.compared->steps, 2U);
}

TEST_P(memory_on, a_moment_changed_behind_its_back_is_found) {
  const memory_report report = run(options(), [](std::int64_t done, float, training& trained) {
    if (done == 3) put(trained, trained.optimizer().second_moments(), 0.5F);
  });
  EXPECT_TRUE(
      report.failure().starts_with("the run differs from the plain one: step 3: second "
                                   "moment of 'embedding.table', element 0: 0.5 "))
      << report.failure();
}

TEST_P(memory_on, a_bad_text_or_option_is_refused_before_anything_runs) {
  memory_options o = options();
  o.context = 1000;
  EXPECT_THROW(run(o), usage_error);
  o = options();
  o.regions = 99;
  EXPECT_THROW(run(o), usage_error);
  EXPECT_EQ((*calls)[seam_call::kernel], 0U);
}

TEST(a_memory_report, says_what_is_wrong_with_it) {
  memory_report report;
  EXPECT_EQ(report.failure(), "");
  report.planned.updates.captured = 1;
  EXPECT_EQ(report.failure(), "calls did not run as planned: optimizer: captured 0, planned 1");
  report.compared = memory::run_comparison{4, "step 4: losses, element 0: 1 is not 2"};
  EXPECT_EQ(report.failure(),
            "the run differs from the plain one: step 4: losses, element 0: 1 is not 2");
}

}  // namespace
}  // namespace reprise
