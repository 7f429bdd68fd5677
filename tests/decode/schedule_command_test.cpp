// `reprise run decode --watch … --schedule …` as a person types it: what arrives of which step, in
// every mode, and what is refused before anything is made.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/records/run_support.hpp"
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
      // Host_eager has `none` switched too, for which no launch asks.
      EXPECT_EQ(taps.at("switches"), driven ? 0 : mode == "host_eager" ? 2 : 1);
      EXPECT_EQ(taps.at("watch"), "resid_pre:*");
      EXPECT_EQ(taps.at("rows_mode"), "last");
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

// Two prefills come first and a third in between: `step` of a record counts all of them.
TEST_F(schedule_command_test, each_decode_step_says_which_step_of_the_records_it_is) {
  if (!has_arrow()) GTEST_SKIP() << "this build has no Arrow C++: pip install pyarrow";
  const std::string common = decode(
      "--prompt ab --prompt x --prompt-ids 1,2,3 --batch-sizes 1,2 --tokens 6 --watch "
      "'resid_pre:0-3' --schedule '1=resid_pre:0;3=none;5=resid_pre:1-2;8=none'");
  for (const char* more : {"", " --eager", " --toggle-mode device", " --toggle-mode host_eager"}) {
    SCOPED_TRACE(more);
    const std::string run1 = place(folder, "run1");
    std::filesystem::remove_all(run1);
    const nlohmann::json taps = json_of(common + more + " --out " + run1).at("taps");
    std::map<std::uint64_t, std::uint64_t> kept;
    for (const owned_record& one : read_back(run1)) ++kept[one.step];
    std::vector<std::uint64_t> steps;
    for (const nlohmann::json& one : taps.at("records_by_step")) {
      steps.push_back(one.at("record_step"));
      EXPECT_EQ(kept[steps.back()], one.at("records")) << one;
      kept.erase(steps.back());
    }
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{2, 3, 4, 5, 6, 8, 9, 10, 11, 12}));
    EXPECT_EQ(kept, (std::map<std::uint64_t, std::uint64_t>{{0, 4}, {1, 4}, {7, 4}}))
        << "the prefills";
  }
}

TEST_F(schedule_command_test, where_nothing_had_to_be_switched_no_mode_was_chosen) {
  const std::string common = decode("--prompt x --tokens 5 --watch 'resid_pre:*' --schedule ");
  for (const std::string& mode : every_mode) {
    for (const char* typed : {"0=none", "'2=resid_pre:1' --eager"}) {
      SCOPED_TRACE(mode + " " + typed);
      const nlohmann::json taps = json_of(common + typed + " --toggle-mode " + mode).at("taps");
      EXPECT_EQ(taps.at("mode_chosen"), "none");
      EXPECT_EQ(taps.at("mode_why"), "nothing had to be switched");
      EXPECT_EQ(taps.at("switches"), 0);
      EXPECT_EQ(taps.at("driver_calls"), 0);
    }
  }
}

TEST_F(schedule_command_test, ranges_reach_past_the_end_where_those_of_watch_do) {
  const auto records = [&](const std::string& watched, const std::string& set) {
    return by_step(json_of(
        decode("--prompt x --tokens 3 --watch " + watched + " --schedule '1=" + set + "'")));
  };
  using counts = std::vector<std::uint64_t>;
  EXPECT_EQ(records("resid_pre:0-9", "resid_pre:6-9"), (counts{8, 2}));
  EXPECT_EQ(records("resid_pre:2-9", "resid_pre:7-8,resid_pre:2"), (counts{6, 2}));
  EXPECT_EQ(records("'*'", "resid_pre:5-99"), (counts{8, 3}));
  EXPECT_EQ(records("resid_pre", "resid_pre:5-99"), (counts{8, 3}));
  EXPECT_EQ(records("resid_pre:1-2", "resid_pre"), (counts{2, 2}));
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
  refused(watched + "--schedule '0='", "--schedule, step 0: points ''");
  refused(watched + "--schedule '0=resid_pre:3-1'", "ends before it begins");
  refused(watched + "--schedule '0=none;8=resid_pre:4'",
          "--schedule 8=resid_pre:4: 'resid_pre:4' is not watched; name points of --watch "
          "resid_pre:0-3");
  refused(watched + "--schedule '8=resid_pre:2-5'", "'resid_pre:4' is not watched");
  refused(watched + "--schedule '8=resid_pre:0-9'", "'resid_pre:4' is not watched");
  refused("--watch resid_pre:0-7 --schedule '8=resid_pre:0-9'", "'resid_pre:8' is not watched");
  const std::string marks = " is no point of this model; it marks resid_pre:0-7";
  refused(watched + "--schedule '8=resid_pst'", "'resid_pst'" + marks);
  refused(watched + "--schedule '0=resid_pre:9'", "'resid_pre:9'" + marks);
  refused(watched + "--schedule '0=resid_pre:1,resid_pre:8-9'", "'resid_pre:8-9'" + marks);
}

TEST_F(schedule_command_test, what_the_model_does_not_have_is_not_advised) {
  const auto line = [&](const std::string& set) {
    return run(decode("--prompt x --tokens 2 --watch resid_pre:0-7 --schedule '0=" + set + "'"))
        .err;
  };
  EXPECT_NE(line("resid_pre:6-8").find("name points of --watch resid_pre:0-7\n"),
            std::string::npos);
  EXPECT_EQ(line("resid_pre:8").find("watch it"), std::string::npos);
}

TEST_F(schedule_command_test, a_line_quotes_no_more_of_an_option_than_fits_it) {
  const std::string kind(3000, 'k');
  const std::string watched = "--watch 'resid_pre:*' ";
  for (const std::string& typed :
       {"--watch " + kind, "--watch '" + kind + "!'", "--watch resid_pre:" + kind,
        watched + "--schedule " + kind, watched + "--schedule '" + kind + "=none'",
        watched + "--schedule 0=" + kind, watched + "--schedule '0=" + kind + "!'",
        watched + "--schedule '4=*;2=" + kind + "'", watched + "--toggle-mode " + kind,
        watched + "--rows " + kind, watched + "--when-full " + kind}) {
    const std::string err = run(decode("--prompt x --tokens 2 " + typed)).err;
    EXPECT_LE(std::count(err.begin(), err.end(), 'k'), 80 + 12) << err;
    EXPECT_NE(err.find("kk...kk"), std::string::npos) << err;
    EXPECT_LT(err.size(), 300U) << err;
  }
}

}  // namespace
}  // namespace reprise::test
