// A model of a few hundred weights and a text of a few lines, so that the tests of this workload
// run in no time on every device.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/devices.hpp"
#include "workloads/memory/memory.hpp"

namespace reprise::test {

// A file of the test's own, gone with it.
class text_file {
 public:
  explicit text_file(const std::string& text) {
    std::string pattern = testing::TempDir() + "reprise-text-XXXXXX";
    const int opened = ::mkstemp(pattern.data());
    if (opened < 0) std::abort();
    ::close(opened);
    path_ = pattern;
    std::ofstream{path_, std::ios::binary} << text;
  }
  ~text_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  text_file(const text_file&) = delete;
  text_file& operator=(const text_file&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline const char* const few_lines =
    "And God said, Let there be light: and there was light.\n"
    "And God saw the light, that it was good: and God divided the light from the darkness.\n"
    "And God called the light Day, and the darkness he called Night.\n";

// Chunks do not fill the context, and slots are written again and again.
inline memory::memory_options small_options(const std::filesystem::path& text) {
  memory::memory_options o;
  o.text = text;
  o.steps = 3;
  o.batch = 2;
  o.context = 7;
  o.layers = 1;
  o.width = 8;
  o.side = 3;
  o.writes = 3;
  o.reads = 2;
  o.key_width = 4;
  o.chunk = 4;
  o.seed = 5;
  o.prompt = "And ";
  o.sample = 6;
  o.verify = true;
  return o;
}

// REPRISE_MEMORY_STEPS=200 makes the long form of these tests.
inline std::int64_t steps_to_run(std::int64_t otherwise) {
  const char* const wanted = std::getenv("REPRISE_MEMORY_STEPS");
  return wanted == nullptr ? otherwise : std::strtoll(wanted, nullptr, 10);
}

inline const std::vector<on_conflict>& policies() {
  static const std::vector<on_conflict> all{hold{}, recompute{}, slots{1}, slots{2}, slots{3}};
  return all;
}

inline std::string told(const memory::memory_options& o) {
  return text_of(o.conflict) + ", accumulate " + std::to_string(o.accumulate) + ", regions " +
         std::to_string(o.regions) + ", " + std::string{name_of(o.storage)};
}

// No bit differs from the plain run's and every counter is the planned one.
inline void expect_right(const memory::memory_report& report,
                         const memory::memory_options& options) {
  EXPECT_EQ(report.failure(), "");
  ASSERT_TRUE(report.compared.has_value());
  EXPECT_EQ(report.compared->steps, static_cast<std::uint64_t>(options.steps));
}

}  // namespace reprise::test
