// Run directories: what is written is what is read, and what cannot be written there.
#include "reprise/records/arrow/arrow_sink.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "reprise/records/sink_queue.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/records/run_support.hpp"

namespace reprise::test {
namespace {

class arrow_sink_test : public run_test {};

void write_text(const std::filesystem::path& file, std::string_view text) {
  std::ofstream{file, std::ios::binary} << text;
}

TEST_F(arrow_sink_test, gives_back_every_record_as_it_was) {
  {
    sink_queue queue{arrow_sink(folder), "a run", {}};
    for (std::uint64_t n = 0; n < 300; n += 3) queue.publish(views(records_numbered(n, 3)));
    queue.close();
  }
  EXPECT_EQ(read_back(folder), records_numbered(0, 300));
  const recorded_run run{folder};
  EXPECT_EQ(run.name(), "a run");
  EXPECT_EQ(run.state(), run_state::closed);
  EXPECT_EQ(run.records(), 300U);
  EXPECT_EQ(run.cut_bytes(), 0U);
  EXPECT_EQ(read_back(folder, "point=final_norm").size(), 75U);
}

TEST_F(arrow_sink_test, takes_records_without_rows_and_of_every_element_type) {
  std::vector<owned_record> all;
  for (const dtype type : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::i32, dtype::i64,
                           dtype::u64, dtype::u8}) {
    owned_record record = record_number(all.size());
    record.type = type;
    record.shape = {2, 3, 1};
    record.rows = 2;
    record.bytes.assign(6 * size_of(type), std::byte{7});
    all.push_back(record);
    record.shape = {0, 3};
    record.rows = 0;
    record.bytes.clear();
    all.push_back(record);
  }
  const auto sink = arrow_sink(folder);
  sink->open("types");
  sink->write(views(all));
  sink->close();
  EXPECT_EQ(read_back(folder), all);
}

TEST_F(arrow_sink_test, begins_a_new_segment_once_one_is_large) {
  const auto sink = arrow_sink(folder, {.segment_bytes = 6'000});
  sink->open("run1");
  write_batches(*sink, 0, 200, 10);
  sink->close();
  EXPECT_GT(segments_of(folder).size(), 2U);
  EXPECT_EQ(recorded_run{folder}.segments().size(), segments_of(folder).size());
  EXPECT_EQ(read_back(folder), records_numbered(0, 200));
}

TEST_F(arrow_sink_test, can_be_read_while_it_is_written) {
  const auto sink = arrow_sink(folder, {.segment_bytes = 6'000});
  sink->open("run1");
  for (std::uint64_t n = 0; n < 100; n += 10) {
    write_batches(*sink, n, 10, 10);
    const recorded_run run{folder};
    EXPECT_EQ(run.state(), run_state::being_written);
    EXPECT_EQ(run.records(), n + 10);
    EXPECT_EQ(read_back(folder), records_numbered(0, n + 10));
  }
  sink->close();
}

TEST_F(arrow_sink_test, says_in_its_manifest_what_was_flushed) {
  const auto sink = arrow_sink(folder);
  sink->open("run1");
  write_batches(*sink, 0, 30, 10);
  sink->flush();
  const run_manifest manifest = read_manifest(folder);
  ASSERT_EQ(manifest.segments.size(), 1U);
  EXPECT_EQ(manifest.segments[0].batches, 3U);
  EXPECT_EQ(manifest.segments[0].records, 30U);
  EXPECT_EQ(manifest.segments[0].bytes, std::filesystem::file_size(segments_of(folder)[0]));
  EXPECT_FALSE(manifest.closed);
  sink->close();
  EXPECT_TRUE(read_manifest(folder).closed);
}

TEST_F(arrow_sink_test, without_a_record_leaves_a_run_without_segments) {
  const auto sink = arrow_sink(folder);
  sink->open("nothing");
  sink->flush();
  sink->close();
  EXPECT_TRUE(segments_of(folder).empty());
  EXPECT_EQ(recorded_run{folder}.records(), 0U);
}

TEST_F(arrow_sink_test, goes_on_with_a_run_that_was_cut_off_and_says_how_much_was_whole) {
  {
    const auto sink = arrow_sink(folder);
    sink->open("the first");
    write_batches(*sink, 0, 30, 10);
  }  // gone without close
  EXPECT_EQ(recorded_run{folder}.state(), run_state::cut_off);
  std::ofstream{segments_of(folder)[0], std::ios::app | std::ios::binary} << "half a batch";
  std::vector<std::string> lines;
  const log_sink before = set_log_sink([&](std::string_view line) { lines.emplace_back(line); });
  const auto sink = arrow_sink(folder);
  sink->open("the second");
  set_log_sink(before);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(has(lines[0], "3 batches of open segments were whole, 12 bytes behind them were cut"))
      << lines[0];
  write_batches(*sink, 30, 10, 10);
  sink->close();
  EXPECT_EQ(read_back(folder), records_numbered(0, 40));
  EXPECT_EQ(recorded_run{folder}.name(), "the first");
  EXPECT_EQ(segments_of(folder).size(), 2U);
}

TEST_F(arrow_sink_test, refuses_a_folder_that_is_not_its_own_in_one_line) {
  const auto refused = [&](std::string_view part) {
    const std::string line = line_of<usage_error>([&] { arrow_sink(folder)->open("x"); });
    EXPECT_TRUE(has(line, part)) << line;
    EXPECT_TRUE(has(line, folder.native())) << line;
  };
  const auto sink = arrow_sink(folder);
  sink->open("run1");
  refused("somebody is writing a run there");
  sink->close();
  refused("a run is there that has ended");

  folder = scratch.path() / "other";
  std::filesystem::create_directory(folder);
  write_text(folder / "thesis.tex", "do not touch");
  refused("holds other files");
  EXPECT_FALSE(std::filesystem::exists(folder / "manifest.json"));

  folder = scratch.path() / "file";
  write_text(folder, "");
  refused("cannot be made");
  folder /= "below";
  refused("cannot be made");
}

TEST_F(arrow_sink_test, refuses_a_folder_that_takes_no_files) {
  folder = "/proc/reprise-run";
  const std::string line = line_of<usage_error>([&] { arrow_sink(folder)->open("x"); });
  EXPECT_TRUE(has(line, "cannot be made")) << line;
  folder = "/proc/self/task";
  line_of<usage_error>([&] { arrow_sink(folder)->open("x"); });
}

TEST_F(arrow_sink_test, is_read_only_under_its_own_schema) {
  const auto sink = arrow_sink(folder);
  sink->open("run1");
  write_batches(*sink, 0, 5, 5);
  sink->close();
  std::string text = manifest_text(read_manifest(folder));
  text.replace(text.find("\"reprise_records\": 1"), 20, "\"reprise_records\": 2");
  write_text(folder / manifest_file, text);
  const std::string line = line_of<usage_error>([&] { recorded_run{folder}; });
  EXPECT_TRUE(has(line, "schema 2 and this reads schema 1")) << line;
}

TEST_F(arrow_sink_test, what_is_no_run_is_refused_by_name) {
  EXPECT_TRUE(has(line_of<usage_error>([&] { recorded_run{folder}; }), "no run directory"));
  std::filesystem::create_directory(folder);
  for (const char* text : {"", "[]", "{}", R"({"reprise_records": 1})",
                           R"({"reprise_records": 1, "run": "x", "closed": true, "segments":
                               [{"file": "../segment-000000.arrows", "closed": true, "batches": 1,
                                 "records": 1, "bytes": 1}]})"}) {
    write_text(folder / manifest_file, text);
    const std::string line = line_of<usage_error>([&] { recorded_run{folder}; });
    EXPECT_TRUE(has(line, "manifest.json")) << line;
  }
}

TEST_F(arrow_sink_test, a_segment_that_lost_what_the_manifest_knows_is_refused) {
  const auto sink = arrow_sink(folder);
  sink->open("run1");
  write_batches(*sink, 0, 20, 10);
  sink->close();
  const std::filesystem::path segment = segments_of(folder)[0];
  std::filesystem::resize_file(segment, std::filesystem::file_size(segment) - 20);
  const std::string line = line_of<usage_error>([&] { read_back(folder); });
  EXPECT_TRUE(has(line, "ends after 1 of 2 batches")) << line;
  std::filesystem::remove(segment);
  EXPECT_TRUE(has(line_of<usage_error>([&] { read_back(folder); }), "cannot be read"));
}

}  // namespace
}  // namespace reprise::test
