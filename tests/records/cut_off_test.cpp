// Runs that end in the middle: at every byte of a segment, and by killing the process that writes.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "reprise/records/arrow/run_manifest.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/records/killed_writer.hpp"

namespace reprise::test {
namespace {

class cut_off_test : public run_test {
 protected:
  void TearDown() override { set_log_sink({}); }
};

std::string bytes_in(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

// A run that was killed when its only segment had these bytes.
void make_cut_off(const std::filesystem::path& folder, std::string_view bytes) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  run_manifest manifest{.run = "run1"};
  manifest.segments.push_back({.file = segment_name(0)});
  std::ofstream{folder / manifest_file} << manifest_text(manifest);
  std::ofstream{folder / segment_name(0), std::ios::binary} << bytes;
}

TEST_F(cut_off_test, a_segment_cut_at_any_byte_gives_its_whole_batches) {
  const auto sink = arrow_sink(folder);
  sink->open("run1");
  std::vector<std::size_t> ends;  // of each batch
  for (std::uint64_t n = 0; n < 6; n += 2) {
    write_batches(*sink, n, 2, 2);
    ends.push_back(std::filesystem::file_size(segments_of(folder)[0]));
  }
  sink->close();
  const std::string bytes = bytes_in(segments_of(folder)[0]);
  ASSERT_EQ(bytes.size(), ends.back() + 8) << "the end of the stream";

  const std::filesystem::path cut = scratch.path() / "cut";
  set_log_sink([](std::string_view) {});
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    make_cut_off(cut, std::string_view{bytes}.substr(0, size));
    const auto whole = static_cast<std::uint64_t>(
        std::ranges::count_if(ends, [&](std::size_t end) { return end <= size; }));
    const recorded_run run{cut};
    ASSERT_EQ(run.state(), run_state::cut_off);
    ASSERT_EQ(run.batches(), whole) << "of the first " << size << " bytes";
    ASSERT_EQ(run.records(), 2 * whole);
    ASSERT_EQ(read_back(cut), records_numbered(0, 2 * whole)) << size << " bytes";

    // Whoever writes on finds the same, and what it adds comes after it.
    const auto next = arrow_sink(cut);
    next->open("run1");
    ASSERT_EQ(segments_of(cut).size(), whole == 0 ? 0U : 1U) << size << " bytes";
    write_batches(*next, 2 * whole, 2, 2);
    next->close();
    ASSERT_EQ(read_back(cut), records_numbered(0, 2 * whole + 2)) << size << " bytes";
    ASSERT_EQ(recorded_run{cut}.cut_bytes(), 0U);
  }
}

TEST_F(cut_off_test, a_segment_with_a_damaged_byte_gives_records_or_one_line) {
  const auto sink = arrow_sink(folder);
  sink->open("run1");
  write_batches(*sink, 0, 4, 2);
  sink->close();
  const std::string bytes = bytes_in(segments_of(folder)[0]);
  const std::filesystem::path damaged = scratch.path() / "damaged";
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x55);
    make_cut_off(damaged, wrong);
    try {
      EXPECT_LE(read_back(damaged).size(), 4U);
    } catch (const error& refused) {
      EXPECT_EQ(std::string_view{refused.what()}.find('\n'), std::string_view::npos);
    }
  }
}

// REPRISE_RECORDS=10000000 is the long form: some minutes and 2 GB of disk, under ten kills.
TEST_F(cut_off_test, a_run_whose_writer_is_killed_again_and_again_has_each_record_once) {
  const std::uint64_t all = records_to_send(60'000);
  const std::uint64_t kills = is_long_form() ? 10 : 4;
  const scratch_folder roomy{is_long_form()};
  folder = roomy.path() / "run1";
  std::vector<std::uint64_t> whole;  // records after each kill
  for (std::uint64_t kill = 1; kill <= kills; ++kill) {
    const std::uint64_t said = write_until(folder, all, all * kill / (kills + 1));
    const recorded_run run{folder};
    ASSERT_EQ(run.state(), run_state::cut_off);
    ASSERT_GE(run.records(), said) << "a batch that was written is gone";
    whole.push_back(run.records());
  }
  EXPECT_EQ(write_until(folder, all, 0), all);
  std::uint64_t next = 0;
  std::uint64_t wrong = 0;
  std::uint64_t bytes = 0;
  const recorded_run run{folder};
  for (const run_segment& segment : run.segments()) bytes += segment.bytes;
  run.read({}, [&](const tap_record& record) {
    if (owned_record{record} != record_number(next++)) ++wrong;
  });
  EXPECT_EQ(run.state(), run_state::closed);
  EXPECT_EQ(next, all);
  EXPECT_EQ(wrong, 0U);
  if (!is_long_form()) return;
  std::printf("%llu records, %llu wrong, in %zu segments of %llu bytes; whole after each kill:",
              static_cast<unsigned long long>(next), static_cast<unsigned long long>(wrong),
              run.segments().size(), static_cast<unsigned long long>(bytes));
  for (const std::uint64_t records : whole) {
    std::printf(" %llu", static_cast<unsigned long long>(records));
  }
  std::printf("\n");
}

}  // namespace
}  // namespace reprise::test
