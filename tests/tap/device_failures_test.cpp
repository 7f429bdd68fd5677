// A device that fails at any call while steps run under a monitor: every publication that was
// planned was found or counted as lost, what is delivered is right, and what comes behind is whole;
// or the failure was the drain's, and every later call says so.
#include <algorithm>

#include "reprise/device/faulty.hpp"
#include "reprise/sim/device.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::expected_record;
using test::tapped_model;

constexpr int layers = 2;
constexpr std::int64_t rows = 3, width = 5;

// A few steps, one of which meets the failure, and two behind it.
class failing_run {
 public:
  static constexpr std::uint64_t faulted_steps = 4, all_steps = faulted_steps + 2;

  failing_run(bool seeded, const std::shared_ptr<fault_plan>& plan, bool recorded)
      : opened_{open(seeded, plan)}, recorded_{recorded}, plan_{plan} {}

  // False: there is no n-th call.
  bool fails_at(std::uint64_t n) {
    const stream work{opened_};
    tapped_model model{layers, width};
    {
      monitor_options how;
      how.ring_bytes = 6 * 80 + 16;
      how.staging_bytes = 1024;
      how.slots = 6;
      how.flights = 3;
      how.most_points = 8;
      how.most_runs = 8;
      how.thread = false;
      how.markers = true;
      monitor eye{opened_, how};
      eye.watch({"*", row_mode::all()});
      eye.deliver_to([this](const tap_record& one) { book_->keep(one); });
      replay_cache cache{opened_, {.record = recorded_}};
      cache.observe(eye.observer());
      plan_->fail_call(n);
      for (std::uint64_t step = 0; step < faulted_steps; ++step) tried(cache, work, model, step);
      flush(eye);
      fired_ = plan_->fired();
      plan_->fail_call(0);
      for (std::uint64_t step = faulted_steps; step < all_steps; ++step) {
        EXPECT_TRUE(tried(cache, work, model, step)) << "nothing fails any more";
      }
      flush(eye);
      counts_ = eye.counts();
      cache.drain();
      try {
        eye.stop();
      } catch (const device_error&) {
        EXPECT_TRUE(drain_failed_);
      }
    }
    work.synchronize();
    return fired_;
  }

  void expect_right(const std::vector<std::vector<expected_record>>& by_step) {
    std::vector<bool> there(all_steps, false);
    for (const test::kept_record& got : book_->records) {
      // Which step of ours it is the values say: one that failed may have had a number or not.
      bool known = false;
      for (std::uint64_t step = 0; step < all_steps && !known; ++step) {
        known = std::ranges::any_of(by_step[step], [&](const expected_record& want) {
          return want.kind == got.kind && want.layer == got.about.layer &&
                 want.values == got.values;
        });
        if (known) there[step] = true;
      }
      EXPECT_TRUE(known) << got.kind << ":" << got.about.layer << " step " << got.about.step;
    }
    EXPECT_EQ(counts_.mislabelled + counts_.overwritten + counts_.mismatched, 0U);
    if (drain_failed_) {
      EXPECT_GE(counts_.planned, counts_.published + counts_.lost);
      return;
    }
    EXPECT_EQ(counts_.planned, counts_.published + counts_.lost);
    EXPECT_EQ(counts_.lost, 0U) << "what was launched has published";
    EXPECT_EQ(counts_.records, counts_.published);
    EXPECT_EQ(counts_.reserved_bytes, counts_.drained_bytes);
    EXPECT_EQ(book_->records.size(), counts_.records);
    constexpr std::size_t of_a_step = 2 * layers;
    std::size_t whole = 0;
    for (std::uint64_t step = 0; step < all_steps; ++step) {
      EXPECT_TRUE(there[step] || !ran_[step]) << "step " << step << " ran and nothing of it came";
      whole += ran_[step] ? of_a_step : 0;
    }
    EXPECT_GE(counts_.records + counts_.dropped, whole);
    EXPECT_EQ(counts_.dropped, 0U);
    EXPECT_TRUE(ran_[all_steps - 1] && ran_[all_steps - 2]);
  }
  bool drain_failed() const { return drain_failed_; }
  const tap_counts& counts() const { return counts_; }

 private:
  static device open(bool seeded, const std::shared_ptr<fault_plan>& plan) {
    sim::adversary_options how;
    how.takes_fault_points = false;
    auto bare = seeded ? sim::open_adversary(how) : sim::open_cpu(1);
    auto implementation = faulty(std::move(bare), plan);
    auto table = resolve_kernels(test::tap_kernels(), implementation->traits());
    return device{std::move(implementation), std::move(table)};
  }

  bool tried(replay_cache& cache, stream_ref work, tapped_model& model, std::uint64_t step) {
    std::vector<float> x = test::tap_bench::values(rows * width, step);
    try {
      cache.run(work, model.what, {model.x.from_host(x)});
      ran_[step] = true;
    } catch (const error&) {
      ran_[step] = false;
    }
    return ran_[step];
  }
  // A failure of the drain is said by every flush from then on; one of the flush itself, which asks
  // a stream how far it is, only by that one.
  void flush(monitor& eye) {
    drain_failed_ = false;
    try {
      eye.flush();
    } catch (const error& failed) {
      EXPECT_TRUE(std::string_view{failed.what()}.find("injected fault") != std::string_view::npos)
          << failed.what();
      drain_failed_ = true;
    }
  }

  device opened_;
  bool recorded_;
  std::shared_ptr<fault_plan> plan_;
  std::shared_ptr<test::kept_book> book_ = std::make_shared<test::kept_book>();
  std::vector<bool> ran_ = std::vector<bool>(all_steps, false);
  bool fired_ = false;
  bool drain_failed_ = false;
  tap_counts counts_;
};

class failing_devices : public ::testing::TestWithParam<std::tuple<bool, bool>> {};
INSTANTIATE_TEST_SUITE_P(all, failing_devices,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& p) {
                           return std::string{std::get<0>(p.param) ? "sim" : "cpu"} +
                                  (std::get<1>(p.param) ? "_recorded" : "_eager");
                         });

TEST_P(failing_devices, cost_the_records_of_what_failed_wherever_that_is) {
  const auto [seeded, recorded] = GetParam();
  test::next_fault = {test::publication_fault::none};
  std::vector<std::vector<expected_record>> by_step;
  {
    test::tap_bench plain{"cpu"};
    for (std::uint64_t step = 0; step < failing_run::all_steps; ++step) {
      by_step.emplace_back();
      for (const auto& mark :
           plain.plainly({layers, width}, test::tap_bench::values(rows * width, step))) {
        for (auto& one : test::records_of(mark, row_mode::kind::all, step, {})) {
          by_step.back().push_back(std::move(one));
        }
      }
    }
  }
  std::uint64_t failed = 0, of_the_drain = 0, withdrawn = 0;
  for (std::uint64_t n = 1;; ++n) {
    ASSERT_LT(n, 1000U) << "the walk over all calls does not end";
    SCOPED_TRACE("call " + std::to_string(n));
    const auto plan = std::make_shared<fault_plan>();
    failing_run run{seeded, plan, recorded};
    const bool fired = run.fails_at(n);
    run.expect_right(by_step);
    if (HasFailure() || !fired) break;
    ++failed;
    of_the_drain += run.drain_failed() ? 1 : 0;
    withdrawn += run.counts().withdrawn;
  }
  EXPECT_GT(failed, 20U);
  EXPECT_GT(of_the_drain, 0U);
  EXPECT_GT(withdrawn, 0U);
}

}  // namespace
}  // namespace reprise
