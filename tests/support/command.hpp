// The command as a person types it, for tests that are told where it is (REPRISE_COMMAND).
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace reprise::test {

struct run_result {
  int exit_code = -1;
  std::string out;
  std::string err;
};

inline std::string contents(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// A folder of its own for each test, and the command's exit code and streams.
class command_fixture : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder = std::filesystem::path{::testing::TempDir()} /
             (std::string{test->test_suite_name()} + "_" + test->name());
    std::filesystem::remove_all(folder);
    std::filesystem::create_directories(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  run_result run(const std::string& arguments) const {
    const auto out = folder / "stdout";
    const auto err = folder / "stderr";
    const std::string line = std::string{REPRISE_COMMAND} + " " + arguments + " >" + out.string() +
                             " 2>" + err.string() + " </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
  }

  // Exit 2 and one line that names what was wrong; nothing on stdout.
  void expect_refused(const std::string& arguments, const std::string& naming) const {
    const run_result result = run(arguments);
    EXPECT_EQ(result.exit_code, 2) << arguments;
    EXPECT_EQ(result.out, "") << arguments;
    EXPECT_TRUE(result.err.starts_with("reprise: ")) << arguments << "\n" << result.err;
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_NE(result.err.find(naming), std::string::npos) << arguments << "\n" << result.err;
  }

  std::filesystem::path folder;
};

}  // namespace reprise::test
