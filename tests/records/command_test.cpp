// `reprise records` as a person types it.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "reprise/formats/safetensors.hpp"
#include "tests/records/run_support.hpp"
#include "tests/support/command.hpp"

namespace reprise::test {
namespace {

class records_command_test : public command_fixture {
 protected:
  void SetUp() override {
    command_fixture::SetUp();
    if (!has_arrow()) GTEST_SKIP() << "this build has no Arrow C++: pip install pyarrow";
    const auto sink = arrow_sink(made);
    sink->open("a run");
    write_batches(*sink, 0, 40, 10);
    // Rows of one type and shape, as a run of a model has them.
    std::vector<owned_record> rows;
    for (std::uint64_t n = 0; n < 12; ++n) {
      owned_record record = record_number(0);
      record.kind = "mlp_out";
      record.layer = static_cast<int>(n / 4);
      record.first_row = static_cast<std::int64_t>(n % 4);
      const float value = static_cast<float>(n + 1);
      for (int i = 0; i < 4; ++i) std::memcpy(record.bytes.data() + 4 * i, &value, sizeof value);
      rows.push_back(record);
    }
    sink->write(views(rows));
    sink->close();
  }

  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run("records " + made.string() + " " + arguments + " --json -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }

  std::filesystem::path made = std::filesystem::path{testing::TempDir()} /
                               ("records_command_" + std::to_string(::getpid())) / "run1";

  void TearDown() override {
    std::filesystem::remove_all(made.parent_path());
    command_fixture::TearDown();
  }
};

TEST_F(records_command_test, lists_the_first_records_and_says_how_many_there_are) {
  const run_result result = run("records " + made.string() + " --limit 3");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "a run: closed; 1 segments, 5 batches, 52 records\n")) << result.out;
  EXPECT_TRUE(has(result.out, "resid_pre_probe:2")) << result.out;
  EXPECT_TRUE(has(result.out, "and 49 more")) << result.out;
}

TEST_F(records_command_test, writes_one_json_value) {
  const nlohmann::json value = json_of("--where request=7");
  EXPECT_EQ(value.at("records"), 52);
  EXPECT_EQ(value.at("matching"), 4);
  EXPECT_EQ(value.at("state"), "closed");
  ASSERT_EQ(value.at("listed").size(), 4U);
  EXPECT_EQ(value.at("listed")[1].at("replay"), 18);
  const nlohmann::json summary = json_of("--summary --where point=mlp_out,layer=1");
  EXPECT_FALSE(summary.contains("listed"));
  EXPECT_EQ(summary.at("lost"), 0);
  EXPECT_EQ(summary.at("requests"), 1);
  EXPECT_EQ(json_of("--summary").at("requests"), 10);
  ASSERT_EQ(summary.at("points").size(), 1U);
  EXPECT_EQ(summary.at("points")[0].at("tokens"), nlohmann::json({0, 3}));
  EXPECT_EQ(summary.at("points")[0].at("mean_norm"), (10 + 12 + 14 + 16) / 4.0);
}

TEST_F(records_command_test, tells_the_shards_of_a_point_apart) {
  const nlohmann::json value = json_of("--where point=final_norm,shard=1");
  EXPECT_EQ(value.at("matching"), 5);  // 7, 15, ..., 39
  ASSERT_EQ(value.at("points").size(), 1U);
  EXPECT_EQ(value.at("points")[0].at("point"), "final_norm@1of2");
  EXPECT_EQ(value.at("points")[0].at("shard_axes"), nlohmann::json({1}));
  EXPECT_EQ(value.at("listed")[0].at("shard"), 1);
  EXPECT_EQ(value.at("listed")[0].at("shards"), 2);
  EXPECT_EQ(value.at("listed")[0].at("shard_axis"), 1);
}

TEST_F(records_command_test, exports_what_the_filter_takes) {
  const std::string file = (folder / "out").string();
  json_of("--where point=mlp_out --export safetensors --out " + file);
  const safetensors_file read{file};
  EXPECT_EQ(read.tensors().size(), 12U);
  EXPECT_EQ(read.at("mlp_out:2").shape, (std::vector<std::int64_t>{4, 4}));
  json_of("--where point=mlp_out,layer=2 --export npy --out " + file);
  EXPECT_TRUE(has(contents(file), "'shape': (4, 4, )"));
}

TEST_F(records_command_test, draws_the_norms_by_layer_and_token) {
  const std::string file = (folder / "map.png").string();
  const nlohmann::json value = json_of("--where point=mlp_out --heat-map " + file);
  EXPECT_TRUE(has(value.at("written")[0].get<std::string>(), "48 x 36 pixels"));
  EXPECT_TRUE(contents(file).starts_with("\x89PNG"));
}

TEST_F(records_command_test, refuses_in_one_line_and_writes_nothing) {
  const std::string run1 = "records " + made.string() + " ";
  const std::string file = (folder / "out").string();
  expect_refused("records", "DIR");
  expect_refused("records " + folder.string(), "no run directory");
  expect_refused(run1 + "--where layer=x", "layer=x");
  expect_refused(run1 + "--export npy", "--out");
  expect_refused(run1 + "--out " + file, "--export");
  expect_refused(run1 + "--export csv --out " + file, "npy");
  expect_refused(run1 + "--where point=mlp_out --export npy --out " + file, "3 points");
  expect_refused(run1 + "--heat-map " + file, "point=KIND");
  expect_refused(run1 + "--where point=no --heat-map " + file, "no rows");
  expect_refused(run1 + "--export npy --out /no/such/folder/x", "/no/such/folder/x");
  expect_refused(run1 + "--limit -1", "--limit");
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(records_command_test, says_that_a_run_was_cut_off) {
  const std::filesystem::path cut = folder / "cut";
  {
    const auto sink = arrow_sink(cut);
    sink->open("cut");
    write_batches(*sink, 0, 20, 10);
  }
  std::ofstream{segments_of(cut)[0], std::ios::app} << "half";
  const run_result result = run("records " + cut.string() + " --summary");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(has(result.out, "cut: cut off; 1 segments, 2 batches, 20 records")) << result.out;
  EXPECT_TRUE(has(result.out, "4 bytes behind the last whole batch")) << result.out;
}

}  // namespace
}  // namespace reprise::test
