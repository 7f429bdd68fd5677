// The command as a person types it: exit codes, one clear line for wrong input, JSON alone on
// stdout with the fields that are promised.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

using test::contents;
using test::run_result;

class memory_command : public test::command_fixture {
 protected:
  std::string small() const {
    return "run memory --device cpu --steps 3 --batch 2 --context 8 --layers 1 --width 8 --side 4 "
           "--writes 2 --reads 2 --key-width 4 --chunk 4 --sample 9 --text " +
           test::shipped_text().string();
  }
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(small() + " --json " + arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(memory_command, json_on_stdout_is_one_value_with_the_fields_that_are_promised) {
  const run_result result =
      run(small() +
          " --json --verify --accumulate 2 --on-conflict slots:2 --prompt 'And God' --seed 3 "
          "--storage bf16 --saved-rows fp8 --wide-bank-grad --learning-rate 0.02");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("bitwise_equal"), true);
  EXPECT_EQ(value.at("compared_steps"), 3);
  EXPECT_TRUE(value.at("first_difference").is_null());
  EXPECT_EQ(value.at("counters"), value.at("planned"));
  EXPECT_EQ(value.at("counters").at("embedding"),
            (nlohmann::json{{"forward_captured", 2},
                            {"forward_shared", 0},
                            {"forward_replayed", 4},
                            {"forward_eager", nlohmann::json::object()},
                            {"backward_captured", 2},
                            {"backward_replayed", 4},
                            {"backward_eager", nlohmann::json::object()},
                            {"stale_replays", 0},
                            {"stale_by_pool", 0}}));
  EXPECT_EQ(value.at("counters").at("network").at("forward_captured"), 10);
  EXPECT_EQ(value.at("counters").at("total").at("forward_replayed"), 28);
  EXPECT_EQ(value.at("counters").at("updates"),
            (nlohmann::json{{"captured", 1}, {"replayed", 2}, {"eager", 0}}));
  EXPECT_EQ(value.at("counters").at("sample"),
            (nlohmann::json{{"captured", 1}, {"replayed", 14}, {"eager", 0}}));
  EXPECT_GT(value.at("loss_first"), 4.0);
  EXPECT_GT(value.at("loss_last"), 0.0);
  EXPECT_GT(value.at("us_per_step").at("eager"), 0);
  EXPECT_GT(value.at("us_per_step").at("replayed"), 0);
  EXPECT_GT(value.at("parameters"), 1000);
  EXPECT_GT(value.at("bytes").at("recordings"), 0);
  EXPECT_GT(value.at("text_bytes"), 200000);
  EXPECT_TRUE(value.at("version").is_string());
  EXPECT_TRUE(value.at("sample").is_string());
  const nlohmann::json& options = value.at("options");
  EXPECT_EQ(options.at("on_conflict"), "slots:2");
  EXPECT_EQ(options.at("storage"), "bf16");
  EXPECT_EQ(options.at("saved_rows"), "fp8");
  EXPECT_EQ(options.at("wide_bank_grad"), true);
  EXPECT_EQ(options.at("accumulate"), 2);
  EXPECT_EQ(options.at("learning_rate"), 0.02);
  EXPECT_EQ(options.at("prompt"), "And God");
  EXPECT_NE(result.err.find("training"), std::string::npos) << "people read on stderr";
}

TEST_F(memory_command, a_run_without_a_plain_one_has_no_figure_of_it) {
  const nlohmann::json recorded = json_of("");
  EXPECT_TRUE(recorded.at("bitwise_equal").is_null()) << "nothing was compared";
  EXPECT_TRUE(recorded.at("us_per_step").at("eager").is_null());
  EXPECT_GT(recorded.at("us_per_step").at("replayed"), 0);
  const nlohmann::json eager = json_of("--eager");
  EXPECT_GT(eager.at("us_per_step").at("eager"), 0);
  EXPECT_TRUE(eager.at("us_per_step").at("replayed").is_null());
  EXPECT_EQ(eager.at("counters").at("loss").at("forward_eager"),
            (nlohmann::json{{"suspended", 3}}));
  EXPECT_EQ(eager.at("loss_last"), recorded.at("loss_last"));
  EXPECT_EQ(eager.at("sample"), recorded.at("sample"));
}

TEST_F(memory_command, checkpointed_spans_are_planned_too) {
  const nlohmann::json value = json_of("--verify --regions 3 --accumulate 2");
  EXPECT_EQ(value.at("bitwise_equal"), true);
  EXPECT_EQ(value.at("counters"), value.at("planned"));
  EXPECT_EQ(value.at("counters").at("network").at("forward_replayed"), 5 * 11);
}

TEST_F(memory_command, people_see_the_loss_and_the_sample) {
  const run_result result = run(small() + " --prompt 'And God' --verify");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("  loss "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("after 3 steps"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("bit for bit"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\nAnd God"), std::string::npos) << result.out;
}

TEST_F(memory_command, quiet_with_json_to_a_file_prints_nothing) {
  const auto file = folder / "out.json";
  const run_result result = run(small() + " --quiet --json " + file.string());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(nlohmann::json::parse(contents(file)).at("device"), "cpu");
}

TEST_F(memory_command, wrong_words_are_one_line_and_exit_2) {
  for (const std::string option :
       {"--steps", "--batch", "--context", "--layers", "--width", "--side", "--writes", "--reads",
        "--key-width", "--chunk", "--accumulate", "--regions"}) {
    expect_refused("run memory " + option + " 0", option);
    expect_refused("run memory " + option + " -1", option);
    expect_refused("run memory " + option + " many", option);
    expect_refused("run memory " + option + " 99999999999999999999", option);
  }
  expect_refused("run memory --sample -1", "--sample");
  expect_refused("run memory --seed -1", "--seed");
  expect_refused("run memory --regions 7", "--regions");
  expect_refused("run memory --side 2 --writes 5", "--writes");
  expect_refused("run memory --chunk 9000", "--chunk");
  expect_refused("run memory --storage f64", "--storage");
  expect_refused("run memory --saved-rows fp4", "--saved-rows");
  expect_refused("run memory --on-conflict slots", "slots:3");
  expect_refused("run memory --on-conflict slots:0", "slots");
  expect_refused("run memory --learning-rate 0", "--learning-rate");
  expect_refused("run memory --learning-rate nan", "--learning-rate");
  expect_refused("run memory --learning-rate ''", "--learning-rate");
  expect_refused("run memory --temperature -1", "--temperature");
  expect_refused("run memory --prompt ''", "--prompt");
  expect_refused("run memory --eager --verify", "--verify");
  expect_refused("run memory --threads 0", "--threads");
  expect_refused("run memory --device cuda:99 --text " + test::shipped_text().string(), "cuda:99");
  expect_refused("run memory --frobnicate", "frobnicate");
  expect_refused("run memory --json /nowhere/x.json", "/nowhere/x.json");
}

TEST_F(memory_command, texts_that_are_none_are_one_line_and_exit_2) {
  const auto empty = folder / "empty.txt";
  const auto brief = folder / "brief.txt";
  std::ofstream{empty};
  std::ofstream{brief} << "In the beginning";
  expect_refused("run memory --device cpu --text ''", "--text");
  expect_refused("run memory --device cpu --text /nowhere/x.txt", "/nowhere/x.txt");
  expect_refused("run memory --device cpu --text " + folder.string(), "cannot be read");
  expect_refused("run memory --device cpu --text " + empty.string(), "empty");
  expect_refused("run memory --device cpu --text " + brief.string(), "--context");
  expect_refused("run memory --device cpu --text " + brief.string() + " --json " + brief.string(),
                 "the file of --text");
  EXPECT_EQ(test::contents(brief), "In the beginning");
}

TEST_F(memory_command, help_has_an_example) {
  const run_result result = run("run memory --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("Example: reprise run memory"), std::string::npos);
}

}  // namespace
}  // namespace reprise
