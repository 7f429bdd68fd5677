// The command as a person types it: exit codes, one clear line for wrong input, JSON alone on
// stdout with the fields that are promised, a picture; and the denoiser's verb.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise {
namespace {

using test::contents;
using test::run_result;

std::string data() {
  return " --data " + (test::source_dir() / "tests" / "data" / "fashion-mnist").string();
}

class train_command : public test::command_fixture {
 protected:
  // 60 images in windows of three micro-batches of 16, of which the last window has one, short.
  std::string small() const {
    return "run train --device cpu --epochs 2 --subset 60 --batch 16 --accumulate 3 --hidden 16 "
           "--width 8 --mask-hidden 4" +
           data();
  }
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(small() + " --json " + arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out);
  }
};

TEST_F(train_command, json_on_stdout_is_one_value_with_the_fields_that_are_promised) {
  const auto picture = (folder / "predictions.png").string();
  const run_result result = run(small() +
                                " --json --verify --precision bf16 --loss-scale 1024 --clip 0.5 "
                                "--ema 0.9 --dropout 0.2 --learning-rate 0.004 --seed 3 --out " +
                                picture);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("device"), "cpu");
  EXPECT_EQ(value.at("seed"), 3);
  EXPECT_EQ(value.at("bitwise_equal"), true);
  EXPECT_EQ(value.at("compared_windows"), 4);
  EXPECT_EQ(value.at("compared_epochs"), 2);
  EXPECT_TRUE(value.at("first_difference").is_null());
  EXPECT_EQ(value.at("counters"), value.at("planned"));
  EXPECT_EQ(value.at("counters").at("trunk").at("forward_captured"), 1);
  EXPECT_EQ(value.at("counters").at("trunk").at("forward_replayed"), 5);
  EXPECT_EQ(value.at("counters").at("trunk").at("forward_eager"), (nlohmann::json{{"key", 2}}));
  EXPECT_EQ(value.at("counters").at("loss").at("replayed"), 5);
  EXPECT_EQ(value.at("counters").at("mask").at("retirements"), 0);
  EXPECT_EQ(value.at("counters").at("updates"),
            (nlohmann::json{{"captured", 3}, {"replayed", 9}, {"eager", 0}}));
  EXPECT_EQ(value.at("replays_inside_windows"),
            (nlohmann::json{{"trunk", 4}, {"class", 4}, {"mask", 4}}));
  EXPECT_EQ(value.at("images"), 60);
  EXPECT_EQ(value.at("validated_images"), 128);
  EXPECT_GE(value.at("accuracy"), 0.0);
  EXPECT_LE(value.at("accuracy"), 1.0);
  EXPECT_GT(value.at("loss"), 0.0);
  EXPECT_EQ(value.at("loss_scale"), 1024);
  ASSERT_EQ(value.at("epochs").size(), 2U);
  EXPECT_EQ(value.at("epochs").at(1).at("accuracy"), value.at("accuracy"));
  EXPECT_GT(value.at("epochs").at(0).at("seconds"), 0);
  EXPECT_GT(value.at("us_per_step").at("eager"), 0);
  EXPECT_GT(value.at("us_per_step").at("replayed"), 0);
  EXPECT_GT(value.at("bytes").at("recordings"), 0);
  EXPECT_TRUE(value.at("version").is_string());
  EXPECT_EQ(value.at("picture"), picture);
  const nlohmann::json& options = value.at("options");
  EXPECT_EQ(options.at("precision"), "bf16");
  EXPECT_EQ(options.at("graphed"), "network,heads,loss");
  EXPECT_EQ(options.at("loss_scale"), "1024");
  EXPECT_EQ(options.at("learning_rate"), 0.004);
  EXPECT_TRUE(contents(picture).starts_with("\x89PNG"));
  EXPECT_NE(result.err.find("training"), std::string::npos) << "people read on stderr";
}

TEST_F(train_command, a_run_without_a_plain_one_has_no_figure_of_it) {
  const nlohmann::json recorded = json_of("--graphed network,loss");
  EXPECT_TRUE(recorded.at("bitwise_equal").is_null()) << "nothing was compared";
  EXPECT_TRUE(recorded.at("us_per_step").at("eager").is_null());
  EXPECT_GT(recorded.at("us_per_step").at("replayed"), 0);
  EXPECT_TRUE(recorded.at("picture").is_null());
  for (const std::string none : {"--graphed none", "--eager"}) {
    const nlohmann::json eager = json_of(none);
    EXPECT_GT(eager.at("us_per_step").at("eager"), 0);
    EXPECT_TRUE(eager.at("us_per_step").at("replayed").is_null());
    EXPECT_EQ(eager.at("counters").at("mask").at("forward_eager"),
              (nlohmann::json{{"suspended", 8}}));
    EXPECT_EQ(eager.at("options").at("graphed"), "none");
    EXPECT_EQ(eager.at("loss"), recorded.at("loss"));
    EXPECT_EQ(eager.at("validation_loss"), recorded.at("validation_loss"));
  }
}

TEST_F(train_command, labels_can_be_dropped) {
  const nlohmann::json value = json_of("--verify --unlabelled-every 2");
  EXPECT_EQ(value.at("bitwise_equal"), true);
  EXPECT_EQ(value.at("counters").at("class").at("empty_targets"), 4);
  EXPECT_EQ(value.at("counters").at("mask").at("empty_targets"), 0);
}

TEST_F(train_command, people_see_epochs_and_what_was_compared) {
  const run_result result = run(small() + " --verify");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("  epoch   loss "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\n      2 "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("bit for bit"), std::string::npos) << result.out;
}

TEST_F(train_command, quiet_with_json_to_a_file_prints_nothing) {
  const auto file = folder / "out.json";
  const run_result result = run(small() + " --quiet --json " + file.string());
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(nlohmann::json::parse(contents(file)).at("device"), "cpu");
}

TEST_F(train_command, wrong_words_are_one_line_and_exit_2) {
  const std::string verb = "run train --device cpu" + data() + " ";
  for (const std::string option :
       {"--epochs", "--batch", "--accumulate", "--hidden", "--width", "--mask-hidden"}) {
    expect_refused(verb + option + " 0", option);
    expect_refused(verb + option + " -1", option);
    expect_refused(verb + option + " many", option);
    expect_refused(verb + option + " 99999999999999999999", option);
  }
  expect_refused(verb + "--batch 1", "--batch");
  expect_refused(verb + "--subset 1", "--subset");
  expect_refused(verb + "--subset 1000", "512 images");
  expect_refused(verb + "--unlabelled-every 1", "--unlabelled-every");
  expect_refused(verb + "--seed -1", "--seed");
  expect_refused(verb + "--graphed heads,tail", "\"tail\"");
  expect_refused(verb + "--graphed ''", "--graphed");
  expect_refused(verb + "--graphed heads --eager", "--eager");
  expect_refused(verb + "--graphed none --verify", "--verify");
  expect_refused(verb + "--eager --verify", "--verify");
  expect_refused(verb + "--precision fp16", "--precision");
  expect_refused(verb + "--loss-scale much", "--loss-scale");
  expect_refused(verb + "--loss-scale 0", "--loss-scale");
  expect_refused(verb + "--clip -1", "--clip");
  expect_refused(verb + "--clip nan", "--clip");
  expect_refused(verb + "--ema 1", "--ema");
  expect_refused(verb + "--dropout 1", "--dropout");
  expect_refused(verb + "--learning-rate 0", "--learning-rate");
  expect_refused(verb + "--learning-rate ''", "--learning-rate");
  expect_refused(verb + "--mask-weight -1", "--mask-weight");
  expect_refused(verb + "--threads 0", "--threads");
  expect_refused(verb + "--out /nowhere/x.png", "/nowhere/x.png");
  expect_refused(verb + "--out " + folder.string(), "--out");
  expect_refused(verb + "--json x --out x", "one file");
  expect_refused(verb + "--out - --json", "--out -");
  expect_refused(verb + "--frobnicate", "frobnicate");
  expect_refused(verb + "--json /nowhere/x.json", "/nowhere/x.json");
  expect_refused("run train --device cuda:99" + data(), "cuda:99");
}

TEST_F(train_command, data_that_are_none_are_one_line_and_exit_2) {
  expect_refused("run train --device cpu --data ''", "--data");
  expect_refused("run train --device cpu --data /nowhere", "dataset-fashion-mnist");
  const auto broken = folder / "train-images-idx3-ubyte.gz";
  std::ofstream{broken} << "no idx";
  expect_refused("run train --device cpu --data " + folder.string(), broken.filename().string());
  expect_refused("run train --device cpu --data " + folder.string() + " --json " + broken.string(),
                 "a file of --data");
  expect_refused("run train --device cpu --data " + folder.string() + " --out " + broken.string(),
                 "a file of --data");
  expect_refused(
      "run train denoiser --steps 1 --data " + folder.string() + " --json " + broken.string(),
      "a file of --data");
  EXPECT_EQ(contents(broken), "no idx");
}

// What took long is told before what could not be done with it.
TEST_F(train_command, a_picture_that_cannot_be_written_costs_nothing_else) {
  const auto picture = folder / "p.png";
  std::filesystem::create_directories(folder / "p.png.partial" / "in the way");
  const run_result result = run(small() + " --json --out " + picture.string());
  EXPECT_EQ(result.exit_code, 1);
  const nlohmann::json value = nlohmann::json::parse(result.out);
  EXPECT_EQ(value.at("epochs").size(), 2U);
  EXPECT_TRUE(value.at("picture").is_null());
  EXPECT_NE(result.err.find("p.png\": the picture cannot be written here"), std::string::npos)
      << result.err;
}

TEST_F(train_command, help_has_an_example) {
  const run_result result = run("run train --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_NE(result.out.find("Example: reprise run train"), std::string::npos);
  EXPECT_NE(result.out.find("denoiser"), std::string::npos);
}

TEST_F(train_command, the_denoiser_is_made_again) {
  const auto out = folder / "denoiser";
  const std::string verb = "run train denoiser --steps 2 --threads 2" + data() + " --config " +
                           (test::shipped_denoiser() / "config.json").string();
  const run_result made = run(verb + " --json --out " + out.string());
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const nlohmann::json value = nlohmann::json::parse(made.out);
  EXPECT_EQ(value.at("steps"), 2);
  EXPECT_EQ(value.at("seed"), 1);
  EXPECT_GT(value.at("loss"), 0);
  EXPECT_EQ(value.at("model"), (out / "model.safetensors").string());
  EXPECT_EQ(value.at("bytes"), std::filesystem::file_size(out / "model.safetensors"));
  EXPECT_EQ(contents(out / "config.json"), contents(test::shipped_denoiser() / "config.json"));
  EXPECT_NE(made.err.find("training the denoiser"), std::string::npos);
  const run_result shown =
      run("run denoise --device cpu --requests 1 --steps 2 --quiet --model " + out.string());
  EXPECT_EQ(shown.exit_code, 0) << shown.err;

  for (const char* const file : {"model.safetensors", "config.json"}) {
    expect_refused(verb + " --out " + out.string() + " --json " + (out / file).string(), file);
  }
  const std::string before = contents(out / "model.safetensors");
  std::filesystem::create_directories(out / "config.json.partial" / "in the way");
  const run_result half = run(verb + " --seed 2 --out " + out.string());
  EXPECT_EQ(half.exit_code, 1);
  EXPECT_NE(half.err.find("the model cannot be written there"), std::string::npos) << half.err;
  EXPECT_EQ(contents(out / "model.safetensors"), before) << "both files or none";
  std::filesystem::remove_all(out / "config.json.partial");

  expect_refused(verb + " --out " + out.string() + " --steps 0", "--steps");
  expect_refused(verb + " --out " + out.string() + " --seed -1", "--seed");
  expect_refused(verb + " --out " + out.string() + " --threads many", "--threads");
  expect_refused(verb + " --out " + (out / "config.json").string(), "--out");
  expect_refused(verb + " --out ''", "--out");
  expect_refused(verb + " --epochs 3", "epochs");
  expect_refused("run train --epochs 3 denoiser", "--epochs");
  expect_refused("run train denoiser --data /nowhere --out " + out.string(),
                 "dataset-fashion-mnist");
  EXPECT_EQ(run("run train denoiser --help").exit_code, 0);
}

}  // namespace
}  // namespace reprise
