// What `bench decode` runs and counts, and that its own checks bite. Never how long it took.
#include "bench/decode/decode_bench.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "reprise/base/error.hpp"
#include "reprise/device/slab_store.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/paths.hpp"

namespace reprise::bench {
namespace {

decode_bench_options tiny(std::vector<std::int64_t> batch_sizes, std::int64_t tokens,
                          std::int64_t context) {
  decode_bench_options options;
  options.model = test::tiny_llama();
  options.batch_sizes = std::move(batch_sizes);
  options.tokens = tokens;
  options.context = context;
  return options;
}

void ignore(std::string_view, std::size_t, std::size_t) {}

class decode_bench_test : public ::testing::TestWithParam<std::string> {
 protected:
  device opened = test::open_for_test(GetParam());
};

INSTANTIATE_TEST_SUITE_P(devices, decode_bench_test, ::testing::ValuesIn(test::plain_devices()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(decode_bench_test, both_ways_run_the_same_steps_and_say_the_same) {
  const decode_bench_report report = run_decode_bench(opened, tiny({1, 3}, 5, 7), ignore);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.weights, dtype::bf16);
  ASSERT_EQ(report.rows.size(), 2U);
  for (const decode_row& row : report.rows) {
    const auto batch = static_cast<std::uint64_t>(row.batch);
    EXPECT_TRUE(row.equal);
    EXPECT_EQ(row.eager.step_us.count, 5U) << "warm-up is not measured";
    EXPECT_EQ(row.replayed.step_us.count, 5U);
    EXPECT_EQ(row.eager.counts.eager, batch + 9);
    EXPECT_EQ(row.eager.counts.captured, 0U);
    EXPECT_EQ(row.replayed.counts.captured, 1U);
    EXPECT_EQ(row.replayed.counts.replayed, 8U);
    EXPECT_EQ(row.replayed.counts.eager, batch) << "prefill";
    // Steps 5 to 9 attend to 7 + 5 up to 7 + 9 tokens; one is 8 layers of 2 heads of 32, twice.
    EXPECT_EQ(row.kv_bytes, batch * 14 * 8 * 2 * 32 * 2 * sizeof(float));
    EXPECT_GT(row.floor_us, 0);
  }
  // The embedding is the output too, so it is read whole; each further request adds one row.
  EXPECT_EQ(report.rows[1].weight_bytes - report.rows[0].weight_bytes, 2U * 192 * 2);
}

TEST_P(decode_bench_test, what_does_not_fit_the_model_is_refused) {
  EXPECT_THROW(run_decode_bench(opened, tiny({}, 5, 7), ignore), usage_error);
  EXPECT_THROW(run_decode_bench(opened, tiny({0}, 5, 7), ignore), usage_error);
  EXPECT_THROW(run_decode_bench(opened, tiny({1}, 0, 7), ignore), usage_error);
  EXPECT_THROW(run_decode_bench(opened, tiny({1}, 5, 0), ignore), usage_error);
  EXPECT_THROW(run_decode_bench(opened, tiny({1}, 5, 1024), ignore), usage_error);
  EXPECT_THROW(run_decode_bench(opened, tiny({1}, 1015, 6), ignore), usage_error);
}

TEST_P(decode_bench_test, a_run_may_fill_the_context_to_the_last_token) {
  const auto file = std::filesystem::path{::testing::TempDir()} /
                    ("sizes_" + test::test_name(GetParam()) + ".json");
  std::ofstream{file} << R"({"architectures": ["LlamaForCausalLM"], "vocab_size": 64,
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 2,
    "head_dim": 16, "max_position_embeddings": 16, "eos_token_id": [0, 1, 2, 3]})";
  decode_bench_options options = tiny({2}, 4, 8);
  options.config = file;
  const decode_bench_report report = run_decode_bench(opened, options, ignore);
  EXPECT_EQ(report.failure(), "");
  EXPECT_EQ(report.weights, dtype::bf16) << "drawn";
  EXPECT_EQ(report.rows.at(0).replayed.step_us.count, 4U) << "no token ends a request early";
  options.tokens = 5;
  EXPECT_THROW(run_decode_bench(opened, options, ignore), usage_error);
  std::filesystem::remove(file);
}

TEST(decode_bench_checks, other_counts_and_other_tokens_are_told) {
  decode_bench_report report;
  decode_row& row = report.rows.emplace_back();
  row.batch = 4;
  row.equal = true;
  row.replayed.counts.replayed = row.replayed.planned.replayed = 7;
  EXPECT_EQ(report.failure(), "");
  row.replayed.counts.replayed = 6;
  EXPECT_NE(report.failure().find("batch 4"), std::string::npos) << report.failure();
  row.replayed.counts.replayed = 7;
  row.eager.counts.eager_reasons["capture failed"] = 1;
  EXPECT_NE(report.failure(), "") << "for another reason than planned";
  row.eager.counts.eager_reasons.clear();
  row.equal = false;
  EXPECT_NE(report.failure().find("other tokens"), std::string::npos) << report.failure();
}

TEST(copy_rate, counts_what_is_read_and_what_is_written_and_gives_the_memory_back) {
  const device opened = test::open_for_test("cpu");
  const copy_rate rate = measure_copies(opened, std::size_t{1} << 20);
  EXPECT_EQ(rate.bytes, std::size_t{1} << 20);
  EXPECT_GT(rate.bytes_per_us, 0);
  const slab_store& slabs = *device_ref{opened}.state().slabs;
  EXPECT_EQ(slabs.leased_bytes() + slabs.idle_bytes(), 0U);
}

}  // namespace
}  // namespace reprise::bench
