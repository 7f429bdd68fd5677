// The command as a person types it: exit codes, one clear line for wrong input, JSON alone on
// stdout.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

using test::contents;
using test::run_result;

class command_test : public test::command_fixture {
 protected:
  std::string model() const { return test::tiny_llama().string(); }

  // A copy of the model to spoil.
  std::filesystem::path model_copy() const {
    const auto copied = folder / "model";
    std::filesystem::create_directories(copied);
    for (const char* file : {"config.json", "model.safetensors"}) {
      std::filesystem::copy_file(test::tiny_llama() / file, copied / file,
                                 std::filesystem::copy_options::overwrite_existing);
    }
    return copied;
  }
};

TEST_F(command_test, json_on_stdout_is_one_value_with_the_fields_that_are_promised) {
  const run_result result = run("run decode --device cpu --model " + model() +
                                " --prompt 'In the beginning ' --tokens 96 --greedy --json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  std::ifstream in{test::tiny_llama() / "golden.json"};
  const nlohmann::json golden = nlohmann::json::parse(in).at("cases").at(0);
  EXPECT_EQ(value.at("text"), golden.at("greedy"));
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("bitwise_equal"), true);
  EXPECT_EQ(value.at("steps"), (nlohmann::json{{"captured", 1}, {"replayed", 94}, {"eager", 1}}));
  EXPECT_EQ(value.at("eager_reasons"), (nlohmann::json{{"prefill", 1}}));
  EXPECT_GT(value.at("us_per_token").at("eager"), 0);
  EXPECT_GT(value.at("us_per_token").at("replayed"), 0);
  EXPECT_GT(value.at("bytes").at("total"), 6000000);
  EXPECT_EQ(value.at("seed"), 0);
  EXPECT_TRUE(value.at("version").is_string());
  const nlohmann::json& request = value.at("requests").at(0);
  EXPECT_EQ(request.at("prompt"), "In the beginning ");
  EXPECT_EQ(request.at("text"), value.at("text"));
  EXPECT_EQ(request.at("ids").size(), 96U);
  EXPECT_EQ(request.at("finish"), "length");
  EXPECT_NE(result.err.find("of the world"), std::string::npos) << "people read on stderr";
}

TEST_F(command_test, a_watched_run_says_the_same_and_counts_what_it_took) {
  const auto metrics = folder / "metrics.txt";
  for (const std::string when_full : {"wait", "drop"}) {
    const run_result result =
        run("run decode --device cpu --model " + model() +
            " --prompt 'In the beginning ' --prompt x --tokens 20 --json --watch 'resid_pre:*' "
            "--rows last --when-full " +
            when_full + " --metrics " + metrics.string());
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const nlohmann::json value = nlohmann::json::parse(result.out);
    EXPECT_EQ(value.at("steps"), (nlohmann::json{{"captured", 1}, {"replayed", 18}, {"eager", 2}}));
    const nlohmann::json& taps = value.at("taps");
    const std::uint64_t layers = taps.at("points").size();
    EXPECT_EQ(taps.at("records"), layers * 40);
    EXPECT_EQ(taps.at("lost"), 0);
    EXPECT_EQ(taps.at("dropped"), 0);
    EXPECT_EQ(taps.at("points").at("resid_pre:0"), 40);
    EXPECT_EQ(taps.at("requests").at("0"), layers * 20);
    EXPECT_NE(contents(metrics).find("reprise_tap_records_total " + std::to_string(layers * 40)),
              std::string::npos);
  }
}

TEST_F(command_test, what_cannot_be_watched_gets_one_line_and_nothing_runs) {
  const std::string watched = "run decode --device cpu --model " + model() + " --tokens 2 ";
  const std::pair<const char*, const char*> cases[] = {
      {"--watch resid_pst:0", "'resid_pst:0' is no point of this model; it marks resid_pre:0-"},
      {"--watch resid_pre:99", "'resid_pre:99' is no point"},
      {"--watch resid_pre:3-1", "ends before it begins"},
      {"--watch '*' --rows some", "--rows some: give all or last"},
      {"--watch '*' --when-full never", "--when-full never: give wait or drop"},
  };
  for (const auto& [typed, part] : cases) {
    const run_result result = run(watched + typed);
    EXPECT_EQ(result.exit_code, 2) << typed;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_TRUE(result.out.empty()) << result.out;
  }
}

TEST_F(command_test, json_to_a_file_leaves_stdout_empty_and_quiet_leaves_stderr_empty_too) {
  const auto file = folder / "out.json";
  const run_result result = run("run decode --device cpu --model " + model() +
                                " --prompt x --tokens 3 --quiet --json " + file.string());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(nlohmann::json::parse(contents(file)).at("requests").size(), 1U);
}

TEST_F(command_test, an_eager_run_agrees_with_a_recorded_one_and_its_trace_shows_no_capture) {
  const std::string common =
      "run decode --device cpu --quiet --tokens 40 --json - --model " + model();
  const nlohmann::json recorded = nlohmann::json::parse(run(common).out);
  const nlohmann::json eager = nlohmann::json::parse(run(common + " --eager").out);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(recorded.at("requests").at(i).at("ids"), eager.at("requests").at(i).at("ids"));
  }
  EXPECT_EQ(recorded.at("calls").at("capture"), 1);
  for (const char* call : {"capture", "instantiate", "launch"}) {
    EXPECT_EQ(eager.at("calls").at(call), 0) << call;
  }
  EXPECT_EQ(eager.at("steps").at("eager"), 4 + 39);
  EXPECT_TRUE(eager.at("bitwise_equal").is_null()) << "nothing was compared";
}

TEST_F(command_test, doctor_names_what_is_here_and_what_would_be_used) {
  const nlohmann::json value = nlohmann::json::parse(run("doctor --json --quiet").out);
  EXPECT_EQ(value.at("devices").back().at("name"), "cpu");
  EXPECT_TRUE(value.at("device").is_string());
  const run_result text = run("doctor");
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_NE(text.out.find("--device auto uses"), std::string::npos);
}

TEST_F(command_test, wrong_words_are_one_line_and_exit_2) {
  expect_refused("", "subcommand");
  expect_refused("walk", "walk");
  expect_refused("run", "subcommand");
  expect_refused("run dance", "dance");
  expect_refused("run decode --tokens many", "many");
  expect_refused("run decode --frobnicate", "frobnicate");
  expect_refused("run decode --tokens 0", "--tokens");
  expect_refused("run decode --tokens -4", "--tokens");
  expect_refused("run decode --batch-sizes 0", "batch sizes");
  expect_refused("run decode --batch-sizes 1,x", "x");
  expect_refused("run decode --prompt-ids 1,,2", "1,,2");
  expect_refused("run decode --prompt-ids 300", "300");
  expect_refused("run decode --prompt-ids -1", "-1");
  expect_refused("run decode --prompt ''", "prompt 1 is empty");
  expect_refused("run decode --prompts /nowhere/file", "/nowhere/file");
  expect_refused("run decode --temperature 0", "--temperature");
  expect_refused("run decode --temperature nan", "--temperature");
  expect_refused("run decode --top-p 0", "--top-p");
  expect_refused("run decode --top-p 1.5", "--top-p");
  expect_refused("run decode --greedy --temperature 1", "--greedy");
  expect_refused("run decode --weights int3", "int3");
  expect_refused("run decode --eager --verify", "--verify");
  expect_refused("run decode --threads -1", "--threads");
  expect_refused("run decode --threads 0", "--threads");
  expect_refused("run decode --seed -1", "--seed");
  expect_refused("run decode --seed 99999999999999999999", "--seed");
  expect_refused("run decode --tokens 99999999999999999999", "--tokens");
  expect_refused("run decode --random-weights", "--config");
  expect_refused("run decode --json /nowhere/x.json", "/nowhere/x.json");
}

TEST_F(command_test, writes_over_no_file_of_its_model) {
  const std::filesystem::path weights = folder / "model.safetensors";
  std::ofstream{folder / "config.json"} << "{}";
  std::ofstream{weights} << "as they were";
  const std::string verb = "run decode --device cpu --model " + folder.string();
  for (const std::string option : {"--json ", "--watch resid_pre:0 --metrics "}) {
    expect_refused(verb + " " + option + weights.string(), "a file of --model");
  }
  EXPECT_EQ(test::contents(weights), "as they were");

  const std::filesystem::path prompts = folder / "prompts.txt";
  std::ofstream{prompts} << "a";
  for (const std::string option : {"--json ", "--watch resid_pre:0 --metrics "}) {
    expect_refused(
        "run decode --device cpu --prompts " + prompts.string() + " " + option + prompts.string(),
        "the file of --prompts");
    expect_refused("run decode --device cpu --random-weights --config " + prompts.string() + " " +
                       option + prompts.string(),
                   "the file of --config");
  }
  EXPECT_EQ(test::contents(prompts), "a");
}

TEST_F(command_test, gives_each_output_a_place_of_its_own) {
  const std::string place = (folder / "here").string();
  const std::string verb = "run decode --device cpu --tokens 3 --watch resid_pre:0 ";
  expect_refused(verb + "--json " + place + " --metrics " + place, "the file of --json");
  expect_refused(verb + "--json " + place + " --out " + place, "the file of --json");
  expect_refused(verb + "--out " + place + " --metrics " + place, "the file of --metrics");
  EXPECT_FALSE(std::filesystem::is_directory(place));
}

TEST_F(command_test, unknown_devices_are_one_line_and_exit_2) {
  for (const char* device : {"gpu", "cuda:9", "cuda:x", "cuda:-1", "cuda:99999999999", "''"}) {
    expect_refused(std::string{"run decode --device "} + device, "reprise:");
  }
  expect_refused("run decode --device cuda:9", "cuda:9");
}

TEST_F(command_test, broken_model_folders_are_one_line_and_exit_2) {
  expect_refused("run decode --model /nowhere", "/nowhere");
  expect_refused("run decode --model " + folder.string(), "config.json");
  auto copied = model_copy();
  std::filesystem::remove(copied / "model.safetensors");
  expect_refused("run decode --model " + copied.string(), "model.safetensors");
  copied = model_copy();
  std::filesystem::resize_file(copied / "model.safetensors", 3000000);
  expect_refused("run decode --model " + copied.string(), "model.safetensors");
  std::filesystem::resize_file(copied / "model.safetensors", 5);
  expect_refused("run decode --model " + copied.string(), "model.safetensors");
  copied = model_copy();
  nlohmann::json config = nlohmann::json::parse(contents(copied / "config.json"));
  config["num_hidden_layers"] = 9;
  std::ofstream{copied / "config.json"} << config;
  expect_refused("run decode --model " + copied.string(), "model.layers.8");
  config["num_hidden_layers"] = 7;
  std::ofstream{copied / "config.json"} << config;
  expect_refused("run decode --model " + copied.string(), "model.layers.7");
}

TEST_F(command_test, a_prompt_longer_than_the_context_is_refused_before_anything_runs) {
  std::ofstream{folder / "long"} << std::string(1025, 'a') << "\n";
  expect_refused("run decode --prompts " + (folder / "long").string(), "1025");
}

TEST_F(command_test, a_model_without_a_byte_tokenizer_takes_and_gives_ids) {
  const auto copied = model_copy();
  nlohmann::json config = nlohmann::json::parse(contents(copied / "config.json"));
  config.erase("tokenizer");
  std::ofstream{copied / "config.json"} << config;
  expect_refused("run decode --model " + copied.string() + " --prompt hello", "--prompt-ids");
  const run_result result = run("run decode --device cpu --model " + copied.string() +
                                " --prompt-ids 73,110 --tokens 4 --json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_TRUE(value.at("text").is_null());
  EXPECT_EQ(value.at("requests").at(0).at("prompt"), (nlohmann::json{73, 110}));
  EXPECT_NE(result.err.find("no tokenizer is built"), std::string::npos);
}

TEST_F(command_test, help_has_an_example_for_each_verb) {
  for (const char* verb : {"", "run ", "run decode ", "doctor "}) {
    const run_result result = run(std::string{verb} + "--help");
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_NE(result.out.find("Example: reprise"), std::string::npos) << verb;
  }
  EXPECT_EQ(run("--version").exit_code, 0);
}

}  // namespace
}  // namespace reprise
