// The same text however requests are batched, padded, spread over threads, recorded or not; and the
// counts that each way of running plans.
#include <gtest/gtest.h>

#include "tests/decode/support.hpp"

namespace reprise {
namespace {

const std::vector<std::string> prompts{
    "In the beginning ", "And it came to pass",      "The LORD is my ",
    "Blessed are the ",  "Now these are the names ", "x",
};

class batching_test : public ::testing::TestWithParam<std::string> {
 protected:
  decode::decode_options options(const std::vector<std::string>& of, std::int64_t tokens = 24) {
    return test::tiny_options(of, tokens);
  }
  std::vector<std::string> alone(std::int64_t tokens = 24) {
    std::vector<std::string> all;
    for (const std::string& prompt : prompts) {
      all.push_back(test::texts(test::run_on(GetParam(), options({prompt}, tokens)))[0]);
    }
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(devices, batching_test,
                         ::testing::ValuesIn(test::devices_for_long_tests()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(batching_test, prompts_say_the_same_together_as_alone_at_any_batch_sizes) {
  const std::vector<std::string> expected = alone();
  const std::vector<std::vector<std::int64_t>> sizes{{1}, {8}, {1, 2, 4, 8}, {3}, {64}, {2, 5}};
  for (const std::vector<std::int64_t>& s : sizes) {
    decode::decode_options o = options(prompts);
    o.batch_sizes = s;
    const decode::decode_report report = test::run_on(GetParam(), o);
    EXPECT_EQ(test::texts(report), expected) << "largest batch " << s.back();
    EXPECT_EQ(report.failure(), "");
  }
}

TEST_P(batching_test, threads_change_nothing) {
  const std::vector<std::string> expected =
      test::texts(test::run_on(GetParam(), options(prompts), 1));
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(test::texts(test::run_on(GetParam(), options(prompts), threads)), expected)
        << threads;
  }
}

TEST_P(batching_test, an_eager_run_says_the_same_and_captures_nothing) {
  const auto calls = std::make_shared<call_counts>();
  const device opened = open_device(GetParam(), {.threads = 0, .counts = calls});
  decode::decode_options o = options(prompts);
  o.eager = true;
  const decode::decode_report eager =
      decode::run_decode(opened, o, [](std::size_t, const decode::request&) {});
  EXPECT_EQ(test::texts(eager), alone());
  EXPECT_EQ(eager.counts.captured, 0U);
  EXPECT_EQ(eager.counts.replayed, 0U);
  EXPECT_EQ(eager.counts.eager_reasons.at("prefill"), prompts.size());
  EXPECT_EQ(eager.failure(), "");
  EXPECT_EQ((*calls)[seam_call::capture], 0U);
  EXPECT_EQ((*calls)[seam_call::instantiate], 0U);
  EXPECT_EQ((*calls)[seam_call::launch], 0U);
}

// Six requests of 24 tokens at sizes 1, 2, 4: four start, two wait; each makes 23 decode steps.
TEST_P(batching_test, counts_are_those_of_the_schedule) {
  decode::decode_options o = options(prompts);
  o.batch_sizes = {1, 2, 4};
  const decode::decode_report report = test::run_on(GetParam(), o);
  EXPECT_EQ(report.counts.eager, 6U);
  EXPECT_EQ(report.counts.captured, 2U) << "size 4, then size 2";
  EXPECT_EQ(report.counts.replayed, 23U + 23U - 2U);
}

TEST_P(batching_test, verification_compares_every_replay) {
  decode::decode_options o = options(prompts);
  o.verify = true;
  const decode::decode_report report = test::run_on(GetParam(), o);
  ASSERT_TRUE(report.verified.has_value());
  EXPECT_EQ(report.verified->steps, report.counts.replayed);
  EXPECT_EQ(report.verified->unequal, 0U);
  EXPECT_EQ(test::texts(report), alone());
}

TEST_P(batching_test, sampling_is_the_same_recorded_or_eager_alone_or_together) {
  decode::decode_options o = options(prompts);
  o.sampling = {.greedy = false, .temperature = 0.9F, .top_p = 0.95F, .seed = 7};
  const decode::decode_report together = test::run_on(GetParam(), o);
  EXPECT_EQ(together.failure(), "");
  decode::decode_options eager = o;
  eager.eager = true;
  EXPECT_EQ(test::texts(test::run_on(GetParam(), eager)), test::texts(together));
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    decode::decode_options one = o;
    one.prompts = {o.prompts[i]};
    EXPECT_EQ(test::texts(test::run_on(GetParam(), one))[0], test::texts(together)[i]);
  }
  decode::decode_options other = o;
  other.sampling.seed = 8;
  EXPECT_NE(test::texts(test::run_on(GetParam(), other)), test::texts(together));
}

TEST_P(batching_test, repeats_of_a_prompt_sample_differently) {
  decode::decode_options o = options({"x", "x", "x"});
  o.sampling = {.greedy = false, .temperature = 1.0F, .top_p = 1.0F, .seed = 1};
  const std::vector<std::string> all = test::texts(test::run_on(GetParam(), o));
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(all[1], all[2]);
}

// A thousand tokens each, of which every pair is looked at: half a minute on a simulated GPU.
class a_full_context : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(devices, a_full_context, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(a_full_context, gives_one_token_and_ends_with_length) {
  const std::string full(1024, 'a');
  const decode::decode_report report =
      test::run_on(GetParam(), test::tiny_options({full, full.substr(1)}, 96));
  EXPECT_EQ(report.requests[0].generated.size(), 1U);
  EXPECT_EQ(report.requests[0].finish, decode::finish_reason::length);
  EXPECT_EQ(report.requests[1].generated.size(), 2U);
  EXPECT_EQ(report.requests[1].finish, decode::finish_reason::length);
  EXPECT_EQ(report.failure(), "");
}

TEST_P(batching_test, one_token_needs_no_decode_step) {
  const decode::decode_report report = test::run_on(GetParam(), options({"x"}, 1));
  EXPECT_EQ(report.requests[0].generated.size(), 1U);
  EXPECT_EQ(report.counts.captured + report.counts.replayed, 0U);
  EXPECT_EQ(report.failure(), "");
}

}  // namespace
}  // namespace reprise
