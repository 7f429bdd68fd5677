// Run directories as pyarrow reads them: while they are written, after a crash, and at the end.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "tests/records/killed_writer.hpp"

namespace reprise::test {
namespace {

class python_test : public run_test {
 protected:
  void SetUp() override {
    run_test::SetUp();
    if (IsSkipped()) return;
    if (std::system("python3 -c 'import pyarrow' >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "python3 has no pyarrow: pip install pyarrow";
    }
  }

  // What read_run.py prints.
  std::string as_python_sees_it() const {
    const std::filesystem::path script =
        std::filesystem::path{REPRISE_SOURCE_DIR} / "tests/records/read_run.py";
    const std::string line = "python3 " + script.string() + " " + folder.string() + " 2>&1";
    std::FILE* const said = ::popen(line.c_str(), "r");
    if (said == nullptr) return "python3 did not start";
    std::string text;
    std::array<char, 4096> part{};
    while (const std::size_t got = std::fread(part.data(), 1, part.size(), said)) {
      text.append(part.data(), got);
    }
    EXPECT_EQ(::pclose(said), 0) << text;
    return text;
  }
};

std::string as_printed(const std::vector<owned_record>& records) {
  std::ostringstream text;
  for (const owned_record& r : records) {
    text << r.run << ' ' << r.step << ' ' << r.replay << ' ' << r.kind << ' ' << r.layer << ' '
         << r.shard << ' ' << r.shards << ' ' << r.shard_axis << ' ' << name_of(r.content) << ' '
         << r.request << ' ' << r.first_row << ' ' << r.rows << ' ' << r.place << ' '
         << name_of(r.type) << ' ';
    for (std::size_t i = 0; i < r.shape.size(); ++i) text << (i == 0 ? "" : "x") << r.shape[i];
    text << ' ';
    for (const std::byte b : r.bytes) {
      text << "0123456789abcdef"[static_cast<unsigned>(b) / 16]
           << "0123456789abcdef"[static_cast<unsigned>(b) % 16];
    }
    text << '\n';
  }
  return text.str();
}

TEST_F(python_test, reads_a_run_while_it_is_written_and_at_its_end) {
  const auto sink = arrow_sink(folder, {.segment_bytes = 6'000});
  sink->open("run1");
  write_batches(*sink, 0, 95, 10);
  EXPECT_GT(segments_of(folder).size(), 1U);
  EXPECT_EQ(as_python_sees_it(), as_printed(records_numbered(0, 95)));
  write_batches(*sink, 95, 5, 5);
  sink->close();
  EXPECT_EQ(as_python_sees_it(), as_printed(records_numbered(0, 100)));
}

TEST_F(python_test, reads_the_whole_batches_of_a_run_that_was_cut_off) {
  {
    const auto sink = arrow_sink(folder);
    sink->open("run1");
    write_batches(*sink, 0, 50, 10);
  }
  const std::filesystem::path segment = segments_of(folder)[0];
  std::filesystem::resize_file(segment, std::filesystem::file_size(segment) - 100);
  EXPECT_EQ(as_python_sees_it(), as_printed(records_numbered(0, 40)));
  arrow_sink(folder)->open("run1");  // cuts it
  EXPECT_EQ(as_python_sees_it(), as_printed(records_numbered(0, 40)));
}

TEST_F(python_test, reads_what_a_writer_left_that_was_killed) {
  const std::uint64_t said = write_until(folder, 1'000'000, 2'000);
  const recorded_run run{folder};
  EXPECT_EQ(run.state(), run_state::cut_off);
  EXPECT_GE(run.records(), said);
  EXPECT_LT(run.records(), 1'000'000U);
  const std::string seen = as_python_sees_it();
  EXPECT_TRUE(seen == as_printed(records_numbered(0, run.records()))) << seen.size() << " bytes";
}

TEST_F(python_test, is_told_in_the_documentation_as_it_is_tested) {
  const std::filesystem::path root = REPRISE_SOURCE_DIR;
  const auto text_of = [](const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream{file}.rdbuf();
    return text.str();
  };
  const std::string script = text_of(root / "tests/records/read_run.py");
  const std::size_t begin = script.find("def batches(");
  const std::string function = script.substr(begin, script.find("\n\n\ndef main") - begin);
  EXPECT_TRUE(has(text_of(root / "docs/records.md"), function));
}

}  // namespace
}  // namespace reprise::test
