// `reprise sim` as a person types it: what it prints and writes, how it fails, what it refuses.
#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"

namespace reprise {
namespace {

using test::run_result;

class sim_command_test : public test::command_fixture {
 protected:
  nlohmann::json json_of(const std::string& arguments, int exit_code = 0) const {
    const run_result result = run(arguments + " --json -");
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    return nlohmann::json::parse(result.out);
  }
  static std::string last_line(const std::string& text) {
    const auto end = text.find_last_not_of('\n');
    const auto begin = text.rfind('\n', end);
    return text.substr(begin + 1, end - begin);
  }
  static constexpr const char* racing = "sim --scenario pipeline/no_wait_for_room --seeds 200";
};

TEST_F(sim_command_test, lists_scenarios_with_what_they_say_and_their_planted_bugs) {
  const run_result result = run("sim --list");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.starts_with("pipeline\n    A maker")) << result.out;
  EXPECT_NE(result.out.find("  forks/forked_too_early (race)\n"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\ndecode\n"), std::string::npos) << result.out;
  const nlohmann::json value = json_of("sim --list --scenario forks");
  ASSERT_EQ(value.at("scenarios").size(), 1U);
  EXPECT_EQ(value.at("scenarios")[0].at("name"), "forks");
  EXPECT_EQ(value.at("scenarios")[0].at("planted").size(), 2U);
}

TEST_F(sim_command_test, runs_every_scenario_and_says_how_many_works_ran) {
  const nlohmann::json value = json_of("sim --seeds 2 --quiet");
  const std::size_t scenarios = value.at("scenarios").size();
  EXPECT_GE(scenarios, 14U);
  EXPECT_EQ(value.at("device"), "sim");
  EXPECT_TRUE(value.at("version").is_string());
  EXPECT_EQ(value.at("command"), "reprise sim --scenario all --seeds 2");
  EXPECT_EQ(value.at("seeds"), 2 * scenarios);
  EXPECT_EQ(value.at("failures"), 0);
  EXPECT_GT(value.at("operations"), 1000);
  EXPECT_GT(value.at("ops_per_second"), 0);
  EXPECT_TRUE(value.at("landmarks_missed").is_array());
  EXPECT_TRUE(value.at("repeat").is_null());
}

TEST_F(sim_command_test, takes_scenarios_one_by_one_or_with_commas_and_each_once) {
  const nlohmann::json value =
      json_of("sim --quiet --seeds 1 --scenario clones,forks --scenario lending,forks");
  std::vector<std::string> names;
  for (const nlohmann::json& row : value.at("scenarios")) names.push_back(row.at("name"));
  EXPECT_EQ(names, (std::vector<std::string>{"clones", "forks", "lending"}));
}

TEST_F(sim_command_test, says_in_which_seed_each_planted_bug_was_found) {
  const nlohmann::json value = json_of("sim --scenario forks --planted --quiet");
  ASSERT_EQ(value.at("planted").size(), 2U);
  for (const nlohmann::json& row : value.at("planted")) {
    EXPECT_EQ(row.at("as_planted"), true) << row;
    EXPECT_EQ(row.at("found").at("kind"), "race") << row;
    EXPECT_LE(row.at("found").at("seed"), 200) << row;
  }
  const run_result text = run("sim --scenario forks --planted");
  EXPECT_NE(text.out.find("found in seed"), std::string::npos) << text.out;
}

TEST_F(sim_command_test, a_failure_ends_with_the_command_that_repeats_it) {
  const run_result failed = run(racing);
  EXPECT_EQ(failed.exit_code, 1);
  const std::string again = last_line(failed.out);
  ASSERT_TRUE(again.starts_with("reprise sim --scenario pipeline/no_wait_for_room --seed "))
      << failed.out;
  const run_result repeated = run(again.substr(std::string{"reprise "}.size()));
  EXPECT_EQ(repeated.exit_code, 1);
  EXPECT_NE(repeated.out.find("race"), std::string::npos) << repeated.out;
  EXPECT_EQ(last_line(repeated.out), again);
  // The same seed is the same run, so all of what is told of it is the same.
  const auto told = [](const std::string& out) { return out.substr(out.find("\nseed ")); };
  EXPECT_EQ(told(run(again.substr(std::string{"reprise "}.size())).out), told(repeated.out));
}

TEST_F(sim_command_test, a_failure_is_in_the_json_and_on_stderr) {
  const run_result failed = run(std::string{racing} + " --json");
  EXPECT_EQ(failed.exit_code, 1);
  const nlohmann::json value = nlohmann::json::parse(failed.out);
  ASSERT_EQ(value.at("failures"), 1);
  EXPECT_EQ(value.at("scenarios")[0].at("failures")[0].at("kind"), "race");
  EXPECT_EQ(value.at("repeat"), last_line(failed.err));
  const run_result quiet = run(std::string{racing} + " --quiet");
  EXPECT_EQ(quiet.exit_code, 1);
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(last_line(quiet.err), last_line(failed.err));
}

TEST_F(sim_command_test, progress_is_plain_lines_in_a_pipe_and_quiet_leaves_both_empty) {
  const run_result loud = run("sim --scenario forks,clones --seeds 2 --json");
  EXPECT_NE(loud.err.find("forks ...\nclones ...\n"), std::string::npos) << loud.err;
  EXPECT_EQ(loud.err.find('\r'), std::string::npos);
  EXPECT_EQ(loud.err.find('\x1b'), std::string::npos);
  const auto file = folder / "out.json";
  const run_result quiet = run("sim --scenario forks --seeds 2 --quiet --json " + file.string());
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(quiet.err, "");
  EXPECT_EQ(nlohmann::json::parse(test::contents(file)).at("seeds"), 2);
}

TEST_F(sim_command_test, wrong_words_are_one_line_and_exit_2) {
  expect_refused("sim --scenario nothing", "nothing");
  expect_refused("sim --scenario forks,nothing", "nothing");
  expect_refused("sim --scenario forks/nothing", "forks/nothing");
  expect_refused("sim --scenario ''", "--list");
  expect_refused("sim --seeds 0", "--seeds");
  expect_refused("sim --seeds -1", "--seeds");
  expect_refused("sim --seeds many", "many");
  expect_refused("sim --seed -1", "--seed");
  expect_refused("sim --seed 18446744073709551616", "--seed");
  expect_refused("sim --seed 1 --seeds 2", "--seed");
  expect_refused("sim --seed ''", "--seed");
  expect_refused("sim --seeds ''", "--seeds");
  expect_refused("sim --seed 1 --planted", "--planted");
  expect_refused("sim --json /nowhere/x.json", "/nowhere/x.json");
  expect_refused("sim forks", "forks");
}

TEST_F(sim_command_test, decode_runs_on_a_simulated_gpu_of_any_seed) {
  const nlohmann::json value =
      json_of("run decode --device sim:seed=7 --prompt-ids 1,2,3 --tokens 4 --quiet --no-verify");
  EXPECT_EQ(value.at("device"), "sim:seed=7");
  EXPECT_EQ(value.at("steps").at("replayed"), 2);
}

TEST_F(sim_command_test, help_has_an_example) {
  const run_result result = run("sim --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("Example: reprise sim"), std::string::npos);
}

}  // namespace
}  // namespace reprise
