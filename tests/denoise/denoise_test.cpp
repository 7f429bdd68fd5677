// Requests in turns give the bits that each gives alone, run plainly; the cache counts exactly what
// the schedule says; moving the weights leaves recordings of the new ones alone.
#include "workloads/denoise/denoise.hpp"

#include "reprise/device/counting.hpp"
#include "tests/denoise/support.hpp"

namespace reprise {
namespace {

using denoise::denoise_options;
using denoise::denoise_report;
using test::asked;

class denoise_on : public ::testing::TestWithParam<std::string> {
 protected:
  denoise_options options(std::vector<denoise::image_request> requests) {
    denoise_options made;
    made.model = model.folder();
    made.requests = std::move(requests);
    made.verify = false;
    return made;
  }
  // Four requests of three sizes; two are of the same.
  denoise_options mixed() {
    return options(
        {asked(5, {0}, 1), asked(3, {1, 2}, 2), asked(4, {0, 1, 2, 3}, 3), asked(5, {2, 2}, 4)});
  }
  denoise_report run(const denoise_options& of) { return denoise::run_denoise(opened, of); }
  // Each request alone, in a run of its own that records nothing.
  test::images_of_requests alone(const denoise_options& of) {
    test::images_of_requests all;
    for (const denoise::image_request& each : of.requests) {
      denoise_options one = of;
      one.requests = {each};
      one.eager = true;
      one.weight_moves = 0;
      all.push_back(run(one).images.front());
    }
    return all;
  }

  test::small_model model;
  std::shared_ptr<call_counts> calls = std::make_shared<call_counts>();
  device opened = open_device(GetParam(), {.threads = 1, .counts = calls});
};

INSTANTIATE_TEST_SUITE_P(devices, denoise_on, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(denoise_on, requests_in_turns_give_the_bits_of_each_alone) {
  const denoise_report report = run(mixed());
  EXPECT_TRUE(test::same_bits(report.images, alone(mixed())));
  EXPECT_EQ(report.failure(), "");
}

// 34 steps of the loop; three sizes, so three recordings each of the evaluation and of Euler's.
TEST_P(denoise_on, counts_are_those_of_the_schedule) {
  const denoise_report report = run(mixed());
  EXPECT_EQ(report.counts.captured, 6U);
  EXPECT_EQ(report.counts.replayed, 28U);
  EXPECT_EQ(report.counts.eager, 0U);
  EXPECT_EQ(report.cache.recordings.size(), 6U);
}

TEST_P(denoise_on, a_plain_run_records_nothing_and_says_so) {
  denoise_options plain = mixed();
  plain.eager = true;
  const denoise_report report = run(plain);
  EXPECT_EQ(report.counts.eager, 34U);
  EXPECT_EQ(report.counts.eager_reasons,
            (std::map<std::string, std::uint64_t>{{"recording is off", 34}}));
  EXPECT_EQ(report.failure(), "");
  EXPECT_FALSE(report.compared.has_value());
  for (const seam_call call : {seam_call::capture, seam_call::instantiate, seam_call::launch}) {
    EXPECT_EQ((*calls)[call], 0U) << name_of(call);
  }
}

TEST_P(denoise_on, a_run_is_compared_with_a_plain_one) {
  denoise_options checked = mixed();
  checked.verify = true;
  const denoise_report report = run(checked);
  ASSERT_TRUE(report.compared.has_value());
  EXPECT_EQ(report.compared->unequal, 0U);
  EXPECT_EQ(report.plain_times.eager_steps, 34U);
  EXPECT_EQ(report.counts.captured, 6U) << "the plain run has a cache of its own";
}

// Two requests of one size: 24 steps, the weights moved after 8 and after 16. Each move breaks the
// evaluation's recording once; Euler's uses no weights.
TEST_P(denoise_on, moved_weights_leave_recordings_of_the_new_ones_alone) {
  denoise_options moving = options({asked(6, {0, 1}, 1), asked(6, {2, 3}, 2)});
  const denoise_report still = run(moving);
  moving.weight_moves = 2;
  const denoise_report moved = run(moving);
  EXPECT_EQ(moved.counts.eager_reasons,
            (std::map<std::string, std::uint64_t>{{"fact changed", 2}}));
  EXPECT_EQ(moved.counts.captured, 4U);
  EXPECT_EQ(moved.counts.replayed, 18U);
  EXPECT_EQ(moved.failure(), "");
  EXPECT_EQ(moved.cache.recordings.size(), still.cache.recordings.size());
  EXPECT_EQ(moved.counts.evicted, 2U);
  EXPECT_EQ(moved.cache.bytes.recordings, still.cache.bytes.recordings);
  EXPECT_EQ(moved.weight_bytes, still.weight_bytes);
  EXPECT_TRUE(test::same_bits(moved.images, still.images));
  const std::string& why = moved.reasons.at("fact changed").first;
  EXPECT_NE(why.find("input.weight"), std::string::npos) << why;
  EXPECT_NE(why.find("more"), std::string::npos) << why;
}

TEST_P(denoise_on, stochastic_steps_break_eagerly_between_replays) {
  denoise_options noisy = options({asked(4, {0}, 1), asked(3, {1, 2}, 2)});
  const test::images_of_requests without = run(noisy).images;
  for (denoise::image_request& each : noisy.requests) each.stochastic = true;
  const denoise_report report = run(noisy);
  // Three of four and two of three steps take noise; the last ones are Euler's.
  EXPECT_EQ(report.counts.eager_reasons,
            (std::map<std::string, std::uint64_t>{{"draws on the host", 5}}));
  EXPECT_EQ(report.counts.captured, 4U);
  EXPECT_EQ(report.counts.replayed, 14U - 5U - 4U);
  EXPECT_EQ(report.failure(), "");
  EXPECT_TRUE(test::same_bits(report.images, alone(noisy)));
  EXPECT_FALSE(test::same_bits(report.images, without));
}

TEST_P(denoise_on, a_request_has_noise_of_its_own_seed) {
  const denoise_report report =
      run(options({asked(3, {0}, 5), asked(3, {0}, 5), asked(3, {0}, 6)}));
  EXPECT_TRUE(test::same_bits({report.images[0]}, {report.images[1]}));
  EXPECT_FALSE(test::same_bits({report.images[0]}, {report.images[2]}));
}

TEST_P(denoise_on, guidance_zero_has_no_class_and_one_has_no_other) {
  const auto with_guidance = [&](float scale, std::int32_t of) {
    denoise_options one = options({asked(3, {of}, 9)});
    one.requests[0].guidance = scale;
    return run(one).images;
  };
  const std::int32_t no_class = 3;
  EXPECT_TRUE(test::same_bits(with_guidance(0, 1), with_guidance(0, 2)));
  EXPECT_FALSE(test::same_bits(with_guidance(1, 1), with_guidance(1, 2)));
  EXPECT_TRUE(test::same_bits(with_guidance(0, 1), with_guidance(0, no_class)));
}

TEST_P(denoise_on, threads_change_nothing) {
  const denoise_report one = run(mixed());
  const device more = test::open_for_test(GetParam(), 3);
  EXPECT_TRUE(test::same_bits(denoise::run_denoise(more, mixed()).images, one.images));
}

TEST_P(denoise_on, bad_requests_are_refused_before_anything_runs) {
  const auto refused = [&](const denoise_options& of) { EXPECT_THROW(run(of), usage_error); };
  refused(options({}));
  refused(options({asked(0, {1})}));
  refused(options({asked(3, {})}));
  refused(options({asked(3, {4})}));
  refused(options({asked(3, {-1})}));
  denoise_options nonsense = mixed();
  nonsense.eager = true;
  nonsense.weight_moves = 1;
  refused(nonsense);
}

TEST(a_denoise_report, says_what_is_wrong_with_it) {
  denoise_report report;
  EXPECT_EQ(report.failure(), "");
  report.compared = denoise::image_comparison{3, "request 1, element 7: 0.5 is not 0.25"};
  EXPECT_NE(report.failure().find("3 elements differ"), std::string::npos);
  report.counts.eager = 1;
  report.counts.eager_reasons["capture failed"] = 1;
  EXPECT_NE(report.failure().find("1 capture failed"), std::string::npos);
}

}  // namespace
}  // namespace reprise
