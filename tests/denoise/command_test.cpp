// The command as a person types it: exit codes, one clear line for wrong input, JSON alone on
// stdout, a sheet that is written whole or not at all.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

using test::contents;
using test::run_result;

class denoise_command : public test::command_fixture {
 protected:
  std::string model() const { return " --model " + test::shipped_denoiser().string(); }
  std::string common() const { return "run denoise --device cpu --steps 3 --json" + model(); }
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(denoise_command, json_on_stdout_is_one_value_with_the_fields_that_are_promised) {
  const auto sheet = (folder / "sheet.png").string();
  const run_result result = run(common() + " --requests 3 --classes trouser,9,none --out " + sheet);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("bitwise_equal"), true);
  // Images 1, 2 and 4, three steps of time each: six steps of the loop a request.
  EXPECT_EQ(value.at("steps"), (nlohmann::json{{"captured", 6}, {"replayed", 12}, {"eager", 0}}));
  EXPECT_EQ(value.at("planned"), value.at("steps"));
  EXPECT_EQ(value.at("eager_reasons"), nlohmann::json::object());
  EXPECT_EQ(value.at("evicted"), 0);
  EXPECT_EQ(value.at("recordings"), 6);
  EXPECT_GT(value.at("us_per_step").at("eager"), 0);
  EXPECT_GT(value.at("us_per_step").at("replayed"), 0);
  EXPECT_GT(value.at("bytes").at("total"), value.at("bytes").at("recordings"));
  EXPECT_GT(value.at("bytes").at("weights"), 4000000);
  EXPECT_EQ(value.at("seed"), 0);
  EXPECT_TRUE(value.at("version").is_string());
  EXPECT_EQ(value.at("sheet"), sheet);
  const nlohmann::json& requests = value.at("requests");
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests.at(1).at("classes"), (nlohmann::json{"ankle boot", nullptr}));
  EXPECT_EQ(requests.at(2).at("images"), 4);
  EXPECT_EQ(requests.at(2).at("seed"), 2);
  EXPECT_EQ(requests.at(0).at("digest").get<std::string>().size(), 16U);
  EXPECT_TRUE(contents(sheet).starts_with("\x89PNG"));
  EXPECT_NE(result.err.find("denoising"), std::string::npos) << "people read on stderr";
}

TEST_F(denoise_command, a_recorded_run_an_eager_one_and_one_with_moved_weights_give_the_same_bits) {
  const auto digests = [](const nlohmann::json& value) {
    std::vector<std::string> all;
    for (const auto& request : value.at("requests")) all.push_back(request.at("digest"));
    return all;
  };
  const nlohmann::json recorded = json_of(common() + " --requests 2 --no-verify");
  EXPECT_TRUE(recorded.at("bitwise_equal").is_null()) << "nothing was compared";
  const nlohmann::json eager = json_of(common() + " --requests 2 --eager");
  EXPECT_EQ(digests(eager), digests(recorded));
  EXPECT_EQ(eager.at("steps"), (nlohmann::json{{"captured", 0}, {"replayed", 0}, {"eager", 12}}));
  EXPECT_EQ(eager.at("eager_reasons"), (nlohmann::json{{"recording is off", 12}}));
  const nlohmann::json moved = json_of(common() + " --requests 2 --sync-weights 1");
  EXPECT_EQ(digests(moved), digests(recorded));
  EXPECT_EQ(moved.at("bitwise_equal"), true);
  EXPECT_EQ(moved.at("weight_moves"), 1);
  EXPECT_EQ(moved.at("eager_reasons"), (nlohmann::json{{"fact changed", 1}}));
  EXPECT_EQ(moved.at("evicted"), 2) << "the one of the other size goes too";
}

TEST_F(denoise_command, stochastic_steps_are_counted_by_their_reason_and_explained) {
  const run_result result = run(common() + " --requests 1 --images 1 --sde --explain");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("eager_reasons"), (nlohmann::json{{"draws on the host", 2}}));
  EXPECT_EQ(value.at("bitwise_equal"), true);
  EXPECT_NE(value.at("explanation").at("draws on the host"), "");
  EXPECT_NE(result.err.find("2 x"), std::string::npos) << result.err;
}

TEST_F(denoise_command, quiet_with_json_to_a_file_prints_nothing) {
  const auto file = folder / "out.json";
  const run_result result =
      run("run denoise --device cpu --steps 1 --images 1 --requests 1 "
          "--quiet --json " +
          file.string() + model());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(nlohmann::json::parse(contents(file)).at("requests").size(), 1U);
}

TEST_F(denoise_command, wrong_words_are_one_line_and_exit_2) {
  expect_refused("run denoise --steps 0", "--steps");
  expect_refused("run denoise --steps many", "many");
  expect_refused("run denoise --requests 0", "--requests");
  expect_refused("run denoise --requests -1", "--requests");
  expect_refused("run denoise --images 0", "--images");
  expect_refused("run denoise --images 99999999999999999999", "--images");
  expect_refused("run denoise --guidance nan", "--guidance");
  expect_refused("run denoise --guidance -1", "--guidance");
  expect_refused("run denoise --guidance 21", "--guidance");
  expect_refused("run denoise --classes hat" + model(), "hat");
  expect_refused("run denoise --classes 10" + model(), "10");
  expect_refused("run denoise --classes 1,,2" + model(), "--classes");
  expect_refused("run denoise --seed -1", "--seed");
  expect_refused("run denoise --sync-weights -1", "--sync-weights");
  expect_refused("run denoise --eager --verify", "--verify");
  expect_refused("run denoise --verify --no-verify", "--verify");
  expect_refused("run denoise --eager --sync-weights 2", "--sync-weights");
  expect_refused("run denoise --threads 0", "--threads");
  expect_refused("run denoise --device cuda:99", "cuda:99");
  expect_refused("run denoise --frobnicate", "frobnicate");
  expect_refused("run denoise --json /nowhere/x.json", "/nowhere/x.json");
  expect_refused("run denoise --out /nowhere/x.png", "/nowhere/x.png");
  expect_refused("run denoise --out " + folder.string(), "--out");
  expect_refused("run denoise --out ''", "--out");
  expect_refused("run denoise --model ''", "--model");
  expect_refused("run denoise --guidance ''", "--guidance");
  expect_refused("run denoise --threads 0x10", "--threads");
  expect_refused("run denoise --requests 1 --steps 1 --sync-weights 2" + model(), "--sync-weights");
}

TEST_F(denoise_command, writes_over_no_file_of_its_model) {
  const std::filesystem::path weights = folder / "model.safetensors";
  std::ofstream{folder / "config.json"} << "{}";
  std::ofstream{weights} << "as they were";
  const std::string verb = "run denoise --device cpu --model " + folder.string();
  for (const std::string option : {"--json ", "--out "}) {
    expect_refused(verb + " " + option + weights.string(), "a file of --model");
  }
  EXPECT_EQ(test::contents(weights), "as they were");
}

TEST_F(denoise_command, a_sheet_replaces_no_pipe_and_not_the_json_and_a_link_stays_one) {
  const auto pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused("run denoise --out " + pipe.string(), "regular file");
  const auto one = folder / "one";
  expect_refused("run denoise --out " + one.string() + " --json " + one.string(), "give two");
  const auto link = folder / "link.png";
  std::ofstream{folder / "target.png"} << "an older one";
  std::filesystem::create_symlink(folder / "target.png", link);
  const run_result result =
      run("run denoise --device cpu --steps 1 --images 1 --requests 1 --out " + link.string() +
          model());
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_NE(contents(folder / "target.png"), "an older one");
}

TEST_F(denoise_command, broken_models_are_one_line_and_leave_a_sheet_as_it_was) {
  const auto sheet = folder / "sheet.png";
  std::ofstream{sheet} << "as it was";
  const auto copied = folder / "model";
  std::filesystem::create_directories(copied);
  const std::string arguments =
      "run denoise --device cpu --out " + sheet.string() + " --model " + copied.string();
  expect_refused("run denoise --model /nowhere", "/nowhere");
  expect_refused(arguments, "config.json");
  std::filesystem::copy_file(test::shipped_denoiser() / "config.json", copied / "config.json");
  expect_refused(arguments, "model.safetensors");
  std::filesystem::copy_file(test::shipped_denoiser() / "model.safetensors",
                             copied / "model.safetensors");
  std::filesystem::resize_file(copied / "model.safetensors", 1000000);
  expect_refused(arguments, "model.safetensors");
  EXPECT_EQ(contents(sheet), "as it was");
}

TEST_F(denoise_command, help_has_an_example) {
  const run_result result = run("run denoise --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("Example: reprise run denoise"), std::string::npos);
}

}  // namespace
}  // namespace reprise
