// The benches as a person types them: the shape of their JSON and the counts in it, one clear line
// for wrong input. Never a time.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

using test::run_result;

class bench_command_test : public test::command_fixture {
 protected:
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(arguments + " --json -");
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }
  static std::string llama_8b() {
    return (test::source_dir() / "configs" / "llama-8b.json").string();
  }
};

TEST_F(bench_command_test, replay_writes_a_row_for_each_way_and_says_what_was_counted) {
  const nlohmann::json value = json_of("bench replay --device cpu --nodes 1,5 --repeats 3");
  EXPECT_EQ(value.at("bench"), "replay");
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_TRUE(value.at("model").is_string());
  EXPECT_TRUE(value.at("version").is_string());
  EXPECT_EQ(value.at("command"), "reprise bench replay --device cpu --nodes 1,5 --repeats 3");
  EXPECT_EQ(value.at("repeats"), 3);
  EXPECT_EQ(value.at("staged_bytes"), 4096);
  EXPECT_TRUE(value.at("device_time").is_string());
  ASSERT_EQ(value.at("rows").size(), 20U);
  for (const nlohmann::json& row : value.at("rows")) {
    if (row.at("variant") == "bare") continue;
    EXPECT_EQ(row.at("calls"), 7) << "three rounds before, three measured, one after";
    EXPECT_EQ(row.at("host_us").at("count"), 3);
    EXPECT_LE(row.at("host_us").at("p10"), row.at("host_us").at("median"));
    EXPECT_LE(row.at("host_us").at("median"), row.at("host_us").at("p90"));
    EXPECT_EQ(row.at("device_us").at("count"), 3);
    EXPECT_EQ(row.at("bitwise_equal"), true);
    const bool replayed = row.at("variant") == "replay";
    EXPECT_EQ(row.at("steps"), (nlohmann::json{{"captured", replayed ? 1 : 0},
                                               {"replayed", replayed ? 6 : 0},
                                               {"eager", replayed ? 0 : 7}}));
  }
}

TEST_F(bench_command_test, replay_without_a_gpu_leaves_the_bare_launch_empty_and_says_why) {
  const nlohmann::json value = json_of("bench replay --device cpu --nodes 2 --repeats 1");
  EXPECT_EQ(value.at("adds_us"), nlohmann::json::array());
  EXPECT_TRUE(value.at("no_bare_because").is_string());
  int bare = 0;
  for (const nlohmann::json& row : value.at("rows")) {
    if (row.at("variant") != "bare") continue;
    ++bare;
    EXPECT_TRUE(row.at("host_us").is_null());
    EXPECT_TRUE(row.at("device_us").is_null());
    EXPECT_EQ(row.at("calls"), 0);
  }
  EXPECT_EQ(bare, 2);
  const run_result text = run("bench replay --device cpu --nodes 2 --repeats 1");
  EXPECT_NE(text.out.find("no bare launch"), std::string::npos) << text.out;
}

TEST_F(bench_command_test, cache_writes_each_figure_beside_its_floor_and_its_limit) {
  const std::string command =
      "bench cache --device cpu --nodes 2,5 --recordings 6 --repeats 3 --captures 2 --cycles 40";
  const nlohmann::json value = json_of(command);
  EXPECT_EQ(value.at("bench"), "cache");
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("command"), "reprise " + command);
  EXPECT_EQ(value.at("repeats"), 3);
  EXPECT_EQ(value.at("other_recordings"), 6);
  EXPECT_EQ(value.at("facts"), 32);
  EXPECT_EQ(value.at("key_parts"), 12);
  EXPECT_TRUE(value.at("no_bare_because").is_string());
  std::map<std::string, nlohmann::json> figures;
  for (const nlohmann::json& figure : value.at("figures")) {
    figures[figure.at("what")] = figure;
    EXPECT_TRUE(figure.at("floor").is_string());
    EXPECT_GE(figure.at("us").at("count"), 2);
  }
  EXPECT_EQ(figures.size(), 8U);
  EXPECT_EQ(figures.at("hit").at("limit_us"), 1.5);
  EXPECT_TRUE(figures.at("hit").at("floor_us").is_null()) << "there is no bare launch here";
  EXPECT_TRUE(figures.at("hit").at("within").is_null());
  for (const char* miss : {"miss, not prepared", "miss, not admitted yet", "miss, over budget"}) {
    EXPECT_EQ(figures.at(miss).at("floor"), "eager");
    EXPECT_EQ(figures.at(miss).at("limit_us"), 3.0);
    EXPECT_TRUE(figures.at(miss).at("adds_us").is_number());
    EXPECT_TRUE(figures.at(miss).at("within").is_boolean());
  }
  ASSERT_EQ(value.at("captures").size(), 2U);
  EXPECT_EQ(value.at("captures").at(1).at("nodes"), 5);
  EXPECT_EQ(value.at("captures").at(1).at("us_per_node").at("capture").at("count"), 2);
  const nlohmann::json& cycles = value.at("cycles");
  EXPECT_EQ(cycles.at("captured"), 40);
  EXPECT_EQ(cycles.at("evicted"), 32);
  EXPECT_EQ(cycles.at("limit_bytes"), 2 << 20);
  EXPECT_EQ(cycles.at("within"), true);
  for (const nlohmann::json& calls : value.at("calls")) {
    EXPECT_EQ(calls.at("as_planned"), calls.at("calls"));
    EXPECT_EQ(calls.at("bitwise_equal"), true);
  }
}

TEST_F(bench_command_test, cache_says_nothing_of_the_misses_that_it_plans) {
  const run_result quiet =
      run("bench cache --device cpu --nodes 1 --recordings 2 --repeats 1 --captures 1 --cycles 4 "
          "--quiet --json " +
          (folder / "out.json").string());
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(quiet.err, "");
}

TEST_F(bench_command_test, grad_writes_each_figure_beside_its_floor_and_the_calls_that_it_took) {
  const std::string command = "bench grad --device cpu --rounds 2 --frames 2,5 --ops 3 --steps 2";
  const nlohmann::json value = json_of(command);
  EXPECT_EQ(value.at("bench"), "grad");
  EXPECT_EQ(value.at("command"), "reprise " + command);
  EXPECT_EQ(value.at("rounds"), 2);
  EXPECT_EQ(value.at("input_bytes"), 64 << 10);
  EXPECT_EQ(value.at("parameter_bytes"), 4 << 20);
  EXPECT_TRUE(value.at("no_bare_because").is_string());
  EXPECT_TRUE(value.at("forward_same_within_spread_at_all_frames").is_boolean());
  std::map<std::string, nlohmann::json> figures;
  for (const nlohmann::json& figure : value.at("figures")) {
    figures[figure.at("what")] = figure;
    EXPECT_EQ(figure.at("us").at("count"), 2);
    EXPECT_TRUE(figure.at("floor").is_string());
    EXPECT_GE(figure.at("planned_per_call").at("launch"), 0);
  }
  EXPECT_EQ(figures.size(), 21U);
  const nlohmann::json& forward = figures.at("forward replay, 16 inputs");
  EXPECT_EQ(forward.at("limit_us"), 5.0);
  EXPECT_TRUE(forward.at("floor_us").is_null()) << "there is no bare launch here";
  EXPECT_EQ(forward.at("seam_calls_per_call"), (nlohmann::json{{"launch", 1.0}}));
  EXPECT_TRUE(figures.at("stale backward").at("adds_us").is_number());
  ASSERT_EQ(value.at("training_steps").size(), 4U);
  EXPECT_EQ(value.at("training_steps").at(3).at("forwards_per_step"), 3);
  EXPECT_EQ(value.at("training_steps").at(3).at("with_device_us").at("count"), 2);
  EXPECT_EQ(value.at("op_lives").at("lengths_alive").at("listed_ops"), 3);
  EXPECT_EQ(value.at("op_lives").at("lengths_at_end"),
            (nlohmann::json{{"listed_ops", 0}, {"frames", 0}, {"pools", 0}, {"budget_bytes", 0}}));
  EXPECT_EQ(value.at("op_lives").at("within"), true);
  for (const nlohmann::json& op : value.at("ops")) {
    EXPECT_EQ(op.at("calls"), op.at("planned"));
    EXPECT_EQ(op.at("bitwise_equal"), true);
  }
}

TEST_F(bench_command_test, sdm_writes_each_figure_beside_its_floor_and_leaves_limits_to_a_gpu) {
  const nlohmann::json value = json_of("bench sdm --device cpu --rounds 1 --no-growth");
  EXPECT_EQ(value.at("bench"), "sdm");
  EXPECT_EQ(value.at("command"),
            "reprise bench sdm --device cpu --rounds 1 --sizes small --no-growth");
  EXPECT_GT(value.at("copies").at("bytes_per_us"), 0);
  ASSERT_EQ(value.at("sizes").size(), 1U);
  const nlohmann::json& size = value.at("sizes").at(0);
  EXPECT_EQ(size.at("name"), "small");
  EXPECT_EQ(size.at("slots"), 1024);
  std::map<std::string, nlohmann::json> figures;
  for (const nlohmann::json& figure : size.at("figures")) figures[figure.at("what")] = figure;
  EXPECT_EQ(figures.size(), 19U);
  const nlohmann::json& op = figures.at("op forward and backward");
  EXPECT_EQ(op.at("measured_us").at("count"), 1);
  EXPECT_EQ(op.at("floor_bytes"), 256 * (96 * 512 + 6 * 1024));
  EXPECT_GT(op.at("over_floor"), 0);
  EXPECT_TRUE(op.at("limit").is_null());
  EXPECT_TRUE(figures.at("op backward without whole-bank passes").at("measured_us").is_null());
  const nlohmann::json& layer = figures.at("layer forward and backward");
  EXPECT_EQ(layer.at("limit"), 350.0);
  EXPECT_TRUE(layer.at("within").is_null()) << "nobody judges a CPU";
  EXPECT_TRUE(layer.at("floor_us").is_null());
  ASSERT_EQ(size.at("held_bytes").size(), 2U);
  EXPECT_GT(size.at("held_bytes").at(0).at("op"), 0);
  EXPECT_TRUE(size.at("held_bytes").at(0).at("device").is_null());
  EXPECT_EQ(value.at("decode").at("figures").size(), 2U);
  EXPECT_TRUE(value.at("growth").is_null());
  EXPECT_EQ(value.at("ops").size(), 4U);
  for (const nlohmann::json& one : value.at("ops")) {
    EXPECT_EQ(one.at("calls"), one.at("planned"));
    EXPECT_EQ(one.at("bitwise_equal"), true);
  }
  EXPECT_EQ(value.at("steps").size(), 6U);
  for (const nlohmann::json& one : value.at("steps")) {
    EXPECT_EQ(one.at("bitwise_equal"), true);
    EXPECT_EQ(one.at("calls").at("captured"), 1);
  }
}

TEST_F(bench_command_test, sdm_says_which_sizes_it_took_and_what_slots_cost) {
  const run_result text = run("bench sdm --device cpu --rounds 1");
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("the small size alone, since this is no GPU"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find("at most 350: not judged"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("     16384"), std::string::npos) << text.out;
}

TEST_F(bench_command_test, decode_writes_a_row_for_each_batch_with_its_floor_and_its_counts) {
  const nlohmann::json value =
      json_of("bench decode --device cpu --batch-sizes 1,2 --tokens 3 --context 8");
  EXPECT_EQ(value.at("bench"), "decode");
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("weights"), "bf16");
  EXPECT_EQ(value.at("command"),
            "reprise bench decode --device cpu --batch-sizes 1,2 --tokens 3 --context 8");
  EXPECT_GT(value.at("copies").at("bytes_per_us"), 0);
  ASSERT_EQ(value.at("rows").size(), 2U);
  for (const nlohmann::json& row : value.at("rows")) {
    const std::int64_t batch = row.at("batch");
    EXPECT_EQ(row.at("eager_us").at("count"), 3);
    EXPECT_EQ(row.at("replayed_us").at("count"), 3);
    EXPECT_EQ(row.at("measured_us"), row.at("replayed_us").at("median"));
    EXPECT_GT(row.at("floor_us"), 0);
    EXPECT_GT(row.at("weight_bytes"), 6000000);
    EXPECT_EQ(row.at("steps").at("eager"),
              (nlohmann::json{{"captured", 0}, {"replayed", 0}, {"eager", batch + 7}}));
    EXPECT_EQ(row.at("steps").at("replayed"),
              (nlohmann::json{{"captured", 1}, {"replayed", 6}, {"eager", batch}}));
    EXPECT_EQ(row.at("steps"), row.at("planned"));
    EXPECT_EQ(row.at("tokens_equal"), true);
    EXPECT_EQ(row.at("watched"), nullptr);
  }
}

TEST_F(bench_command_test, decode_measures_steps_with_points_on_beside_their_neighbours) {
  const nlohmann::json value = json_of(
      "bench decode --device cpu --batch-sizes 2 --tokens 4 --context 8 --watch 'resid_pre:*'");
  const nlohmann::json watched = value.at("rows").at(0).at("watched");
  EXPECT_EQ(watched.at("points"), 8);
  EXPECT_EQ(watched.at("on_us").at("count"), 2);
  EXPECT_EQ(watched.at("off_us").at("count"), 2);
  EXPECT_EQ(watched.at("records"), 8 * 2 * (1 + 4)) << "a prefill and four of eight steps";
  EXPECT_EQ(watched.at("steps"), (nlohmann::json{{"captured", 2}, {"replayed", 6}, {"eager", 2}}));
  EXPECT_EQ(watched.at("tokens_equal"), true);
  expect_refused("bench decode --device cpu --watch resid_pre:9-", "resid_pre:9-");
  expect_refused("bench decode --device cpu --watch resid_pre:9", "no point of this model");
  expect_refused("bench decode --device cpu --watch none", "names no point");
  expect_refused("bench decode --device cpu --watch ''", "--watch");
  expect_refused("bench decode --device cpu --watch '*' --tokens 1", "--tokens 2");
}

TEST_F(bench_command_test, decode_draws_the_weights_of_a_configuration_as_bf16) {
  nlohmann::json sizes = nlohmann::json::parse(test::contents(llama_8b()));
  sizes["hidden_size"] = 64;
  sizes["intermediate_size"] = 96;
  sizes["num_hidden_layers"] = 2;
  sizes["vocab_size"] = 300;
  const auto file = folder / "small.json";
  std::ofstream{file} << sizes;
  const nlohmann::json value = json_of(
      "bench decode --device cpu --batch-sizes 2 --tokens 2 --context 4 --config " + file.string());
  EXPECT_EQ(value.at("weights"), "bf16");
  EXPECT_EQ(value.at("rows").at(0).at("tokens_equal"), true);
  // Two layers of 32 query and 8 key/value heads of 128, the output, three norms' gains and the
  // embedding of two tokens.
  const int layer = 2 * 64 * 4096 + 2 * 64 * 1024 + 3 * 64 * 96 + 2 * 64;
  EXPECT_EQ(value.at("rows").at(0).at("weight_bytes"), 2 * (2 * layer + 300 * 64 + 64 + 2 * 64));
}

// Nothing of its 16 GB is drawn before the input has proved good.
TEST_F(bench_command_test, sim_writes_both_ways_and_says_that_nothing_was_found) {
  const nlohmann::json value = json_of("bench sim --operations 300 --seeds 1");
  EXPECT_EQ(value.at("bench"), "sim");
  EXPECT_EQ(value.at("command"), "reprise bench sim --operations 300 --seeds 1");
  EXPECT_EQ(value.at("seeds"), 1);
  EXPECT_EQ(value.at("findings"), 0);
  EXPECT_EQ(value.at("floor_operations_per_second"), 20000);
  EXPECT_TRUE(value.at("checks_cost").is_null());
  for (const char* way : {"watching_memory", "schedule_alone"}) {
    EXPECT_GE(value.at(way).at("operations"), 300);
    EXPECT_EQ(value.at(way).at("operations_per_second").at("count"), 1);
  }
}

TEST_F(bench_command_test, the_large_configuration_is_read_by_both_verbs) {
  expect_refused(
      "run decode --device cpu --random-weights --config " + llama_8b() + " --prompt-ids 151936",
      "vocabulary of 151936");
  expect_refused("bench decode --device cpu --context 4090 --config " + llama_8b(),
                 "context of 4096");
}

TEST_F(bench_command_test, progress_is_plain_lines_in_a_pipe_and_quiet_leaves_both_empty) {
  const run_result loud = run("bench replay --device cpu --nodes 1,2 --repeats 2 --json");
  EXPECT_NE(loud.err.find("1 nodes ...\n2 nodes ...\n"), std::string::npos) << loud.err;
  EXPECT_EQ(loud.err.find('\r'), std::string::npos);
  EXPECT_EQ(loud.err.find('\x1b'), std::string::npos);
  const auto file = folder / "out.json";
  const run_result quiet =
      run("bench replay --device cpu --nodes 1 --repeats 2 --quiet --json " + file.string());
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(nlohmann::json::parse(test::contents(file)).at("bench"), "replay");
}

TEST_F(bench_command_test, wrong_words_are_one_line_and_exit_2) {
  expect_refused("bench", "subcommand");
  expect_refused("bench dance", "dance");
  expect_refused("bench replay --nodes 0", "--nodes");
  expect_refused("bench replay --nodes -5", "--nodes");
  expect_refused("bench replay --nodes 10,x", "x");
  expect_refused("bench replay --nodes 100001", "--nodes");
  expect_refused("bench replay --repeats 0", "--repeats");
  expect_refused("bench replay --repeats many", "many");
  expect_refused("bench replay --device cuda:9", "cuda:9");
  expect_refused("bench replay --device ''", "reprise:");
  for (const char* option : {"--nodes", "--recordings", "--repeats", "--captures", "--cycles"}) {
    expect_refused(std::string{"bench cache "} + option + " 0", option);
  }
  expect_refused("bench cache --json /nowhere/x.json", "/nowhere/x.json");
  for (const char* option : {"--rounds", "--frames", "--ops", "--steps"}) {
    expect_refused(std::string{"bench grad "} + option + " 0", option);
  }
  expect_refused("bench grad --frames 10,x", "x");
  expect_refused("bench grad --json /nowhere/x.json", "/nowhere/x.json");
  expect_refused("bench sdm --rounds 0", "--rounds");
  expect_refused("bench sdm --rounds x", "x");
  expect_refused("bench sdm --sizes middle", "'middle'");
  expect_refused("bench sdm --sizes small,x", "'x'");
  expect_refused("bench sdm --device cuda:9", "cuda:9");
  expect_refused("bench sdm --json /nowhere/x.json", "/nowhere/x.json");
  expect_refused("bench decode --batch-sizes 0", "--batch-sizes");
  expect_refused("bench decode --batch-sizes 1,x", "x");
  expect_refused("bench decode --tokens 0", "--tokens");
  expect_refused("bench decode --tokens 99999999999999999999", "--tokens");
  expect_refused("bench decode --context 0", "--context");
  expect_refused("bench decode --device cpu --context 1024", "--context 1024");
  expect_refused("bench decode --config /nowhere/sizes.json", "/nowhere/sizes.json");
  expect_refused("bench decode --device cuda:9", "cuda:9");
  expect_refused("bench decode --threads 0", "--threads");
  expect_refused("bench decode --json /nowhere/x.json", "/nowhere/x.json");
  expect_refused("bench replay --json /nowhere/x.json", "/nowhere/x.json");
}

TEST_F(bench_command_test, help_has_an_example_for_each_bench) {
  for (const char* verb : {"bench ", "bench cache ", "bench decode ", "bench grad ",
                           "bench replay ", "bench sdm ", "bench sim ", "bench tap "}) {
    const run_result result = run(std::string{verb} + "--help");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.out.find("Example: reprise bench"), std::string::npos) << verb;
  }
}

TEST_F(bench_command_test, json_goes_whole_to_its_target_or_is_refused_before_the_run) {
  const std::string bench = "bench replay --device cpu --nodes 1 --repeats 1 --quiet ";
  expect_refused(bench + "--json ''", "not a file in a folder");
  expect_refused(bench + "--json " + (folder / "none" / "a.json").string(),
                 "not a file in a folder");
  const auto target = folder / "a.json";
  std::ofstream{target} << "earlier";
  const run_result result = run(bench + "--json " + target.string());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(test::contents(target)).at("bench"), "replay");
  EXPECT_FALSE(std::filesystem::exists(target.string() + ".partial"));
}

TEST_F(bench_command_test, json_that_cannot_be_written_fails_the_run) {
  const std::string bench = "bench replay --device cpu --nodes 1 --repeats 1 --quiet ";
  const run_result result = run(bench + "--json /dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.err.find("cannot be written"), std::string::npos) << result.err;
}

TEST_F(bench_command_test, wrong_words_point_to_the_help_of_their_verb) {
  expect_refused("bench replay --nodes x", "see reprise bench replay --help");
  expect_refused("bench", "see reprise bench --help");
}

}  // namespace
}  // namespace reprise
