// `reprise run decode --watch … --schedule …` as a person types it: what arrives of which step, in
// every mode, and what is refused before anything is made.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace reprise::test {
namespace {

constexpr std::uint64_t all_layers = 8;  // of the model

class schedule_command_test : public command_fixture {
 protected:
  static std::string decode(const std::string& more, const std::string& device = "cpu") {
    return "run decode --device " + device + " --model " + tiny_llama().string() + " " + more;
  }
  nlohmann::json json_of(const std::string& arguments) const {
    const run_result result = run(arguments + " --quiet --json");
    EXPECT_EQ(result.exit_code, 0) << arguments << "\n" << result.err;
    return result.exit_code == 0 ? nlohmann::json::parse(result.out) : nlohmann::json{};
  }
  static std::vector<std::uint64_t> by_step(const nlohmann::json& value) {
    std::vector<std::uint64_t> all;
    for (const nlohmann::json& one : value.at("taps").at("records_by_step")) {
      EXPECT_EQ(one.at("step"), all.size());
      all.push_back(one.at("records"));
    }
    return all;
  }
  static std::string place(const std::filesystem::path& folder, const char* name) {
    return (folder / name).string();
  }
};

const std::vector<std::string> every_mode{"automatic", "variants", "host_lazy", "host_eager",
                                          "device"};

// Two requests of one row; 19 decode steps of size 2.
TEST_F(schedule_command_test, in_every_mode_each_step_has_the_records_of_its_set) {
  for (const std::string device : {"cpu", "sim:seed=3"}) {
    for (const std::string& mode : every_mode) {
      SCOPED_TRACE(device + " " + mode);
      const nlohmann::json value = json_of(
          decode("--prompt ab --prompt x --tokens 20 --no-verify --watch 'resid_pre:*' --schedule "
                 "'0=none;8=resid_pre:2-3;16=none' --toggle-mode " +
                     mode,
                 device));
      std::vector<std::uint64_t> expected(19, 0);
      for (std::size_t step = 8; step < 16; ++step) expected[step] = 2 * 2;
      EXPECT_EQ(by_step(value), expected);
      const nlohmann::json& taps = value.at("taps");
      EXPECT_EQ(taps.at("records"), 2 * all_layers + 8 * 2 * 2) << "those of the prefills too";
      EXPECT_EQ(taps.at("points").at("resid_pre:2"), 2 + 8 * 2);
      EXPECT_EQ(taps.at("points").at("resid_pre:4"), 2);
      EXPECT_EQ(taps.at("lost"), 0);
      EXPECT_EQ(taps.at("mode"), mode);
      EXPECT_EQ(taps.at("output_equals_unwatched"), true);
      // The bare recording, and the one with taps.
      EXPECT_EQ(value.at("steps"),
                (nlohmann::json{{"captured", 2}, {"replayed", 17}, {"eager", 2}}));
      const bool driven = mode == "device";
      EXPECT_EQ(taps.at("switches"), driven ? 0 : 1);
      if (driven) EXPECT_EQ(taps.at("driver_calls"), 0);
      if (mode == "variants") EXPECT_EQ(taps.at("driver_calls"), 1);
      if (mode == "host_lazy") EXPECT_EQ(taps.at("driver_calls"), all_layers - 2);
      if (mode != "automatic") EXPECT_EQ(taps.at("mode_chosen"), mode);
      EXPECT_FALSE(taps.at("mode_why").get<std::string>().empty());
    }
  }
}

TEST_F(schedule_command_test, sets_change_at_their_steps_over_batches_that_change) {
  // One slot at a time of two: the third request is prefilled in between.
  const std::string common = decode(
      "--prompt ab --prompt x --prompt-ids 1,2,3 --batch-sizes 1,2 --temperature 0.8 --seed 7 "
      "--tokens 6 --watch 'resid_pre:0-3' --rows all --schedule "
      "'1=resid_pre:0;3=resid_pre:1-2;4=*;6=none;7=resid_pre:*;9=resid_pre:3'");
  for (const std::string& mode : every_mode) {
    SCOPED_TRACE(mode);
    const nlohmann::json value = json_of(common + " --toggle-mode " + mode);
    // Five steps of two requests, and five of one.
    EXPECT_EQ(by_step(value), (std::vector<std::uint64_t>{8, 2, 2, 4, 8, 4, 0, 4, 4, 1}));
    EXPECT_EQ(value.at("taps").at("records"), 3 * 4 + 37) << "prefills take all that is watched";
    EXPECT_EQ(value.at("taps").at("output_equals_unwatched"), true);
    EXPECT_EQ(value.at("bitwise_equal"), true);
  }
}

TEST_F(schedule_command_test, what_is_said_to_people_has_the_same) {
  const run_result result =
      run(decode("--prompt x --tokens 6 --watch 'resid_pre:*' --toggle-mode host_lazy --schedule "
                 "'2=resid_pre:2-3;4=none'"));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  for (const char* part : {"schedule    20 records in 4 of 5 decode steps",
                           "switched    1 times by 6 calls of the driver; host_lazy, chosen "
                           "host_lazy: asked for",
                           "the same prompts run again give the same tokens"}) {
    EXPECT_NE(result.out.find(part), std::string::npos) << part << "\n" << result.out;
  }
}

TEST_F(schedule_command_test, a_run_without_one_says_nothing_of_steps) {
  const nlohmann::json taps =
      json_of(decode("--prompt x --tokens 3 --watch '*' --toggle-mode variants")).at("taps");
  EXPECT_EQ(taps.at("mode"), "variants");
  for (const char* field : {"schedule", "records_by_step", "driver_calls", "mode_chosen",
                            "switches", "output_equals_unwatched"}) {
    EXPECT_FALSE(taps.contains(field)) << field;
  }
}

TEST_F(schedule_command_test, what_makes_no_schedule_is_one_line_and_nothing_is_made) {
  const std::string json = place(folder, "out.json");
  const auto refused = [&](const std::string& typed, const std::string& naming) {
    expect_refused(decode("--prompt x --tokens 2 --json " + json + " " + typed), naming);
    EXPECT_FALSE(std::filesystem::exists(json)) << typed;
  };
  const std::string watched = "--watch 'resid_pre:0-3' ";
  refused("--schedule 0=none", "--schedule goes with --watch SET");
  refused("--toggle-mode device", "--toggle-mode goes with --watch SET");
  refused(watched + "--toggle-mode lazy", "--toggle-mode lazy: give automatic, variants");
  refused(watched + "--schedule ''", "'' is no entry");
  refused(watched + "--schedule none", "'none' is no entry");
  refused(watched + "--schedule '=none'", "'=none' is no entry");
  refused(watched + "--schedule 'x=none'", "'x=none' is no entry");
  refused(watched + "--schedule '-1=none'", "'-1=none' is no entry");
  refused(watched + "--schedule '1.5=none'", "'1.5=none' is no entry");
  refused(watched + "--schedule '0=none;'", "'' is no entry");
  refused(watched + "--schedule '99999999999999999999=none'", "is no entry");
  refused(watched + "--schedule '4=none;2=*'", "step 2 comes behind step 4");
  refused(watched + "--schedule '4=none;4=*'", "step 4 comes behind step 4");
  refused(watched + "--schedule '0='", "--schedule 0=: points ''");
  refused(watched + "--schedule '0=resid_pre:3-1'", "ends before it begins");
  refused(watched + "--schedule '0=none;8=resid_pre:4'",
          "--schedule 8=resid_pre:4: 'resid_pre:4' is not watched; name points of --watch "
          "resid_pre:0-3");
  refused(watched + "--schedule '8=resid_pre:2-5'", "'resid_pre:4' is not watched");
  refused(watched + "--schedule '8=resid_pst'", "'resid_pst' is not watched");
}

}  // namespace
}  // namespace reprise::test
