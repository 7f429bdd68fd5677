// What the tests of run directories share: a run written straight into a sink, and read back.
#pragma once

#include <memory>
#include <vector>

#include "reprise/records/arrow/arrow_sink.hpp"
#include "reprise/records/arrow/recorded_run.hpp"
#include "tests/records/support.hpp"

namespace reprise::test {

// Skips, where the build has no Arrow.
class run_test : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_arrow()) GTEST_SKIP() << "this build has no Arrow C++: pip install pyarrow";
  }

  scratch_folder scratch;
  std::filesystem::path folder = scratch.path() / "run1";
};

// Writes records first to first + count - 1 in batches of `batch`.
inline void write_batches(record_sink& to, std::uint64_t first, std::uint64_t count,
                          std::uint64_t batch) {
  for (std::uint64_t n = first; n < first + count; n += batch) {
    to.write(views(records_numbered(n, std::min(batch, first + count - n))));
  }
}

inline std::vector<owned_record> read_back(const std::filesystem::path& folder,
                                           std::string_view filter = "") {
  std::vector<owned_record> all;
  recorded_run{folder}.read(parse_record_filter(filter),
                            [&](const tap_record& record) { all.emplace_back(record); });
  return all;
}

inline std::vector<std::filesystem::path> segments_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> all;
  for (const auto& entry : std::filesystem::directory_iterator{folder}) {
    if (entry.path().extension() == ".arrows") all.push_back(entry.path());
  }
  std::ranges::sort(all);
  return all;
}

}  // namespace reprise::test
