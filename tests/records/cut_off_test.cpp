// Runs that end in the middle: at every byte of a segment, and by killing the process that writes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "reprise/records/arrow/run_manifest.hpp"
#include "reprise/telemetry/log.hpp"
#include "tests/records/run_support.hpp"

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

// What the child does: goes on with the run from its first missing record, and says how many it has
// written. Never returns.
[[noreturn]] void write_on(const std::filesystem::path& folder, std::uint64_t all, int say) {
  set_log_sink([](std::string_view) {});
  try {
    const auto sink = arrow_sink(folder, {.segment_bytes = 4U << 20});
    sink->open("run1");
    std::uint64_t done = recorded_run{folder}.records();
    while (done < all) {
      const std::uint64_t batch = std::min<std::uint64_t>(1 + done % 700, all - done);
      write_batches(*sink, done, batch, batch);
      done += batch;
      if (::write(say, &done, sizeof done) != sizeof done) ::_exit(3);
    }
    sink->close();
    ::_exit(0);
  } catch (const std::exception& failed) {
    std::fprintf(stderr, "%s\n", failed.what());
    ::_exit(2);
  }
}

// Lets a child write until it has said `enough`, and kills it there. Returns what it said last: all
// of that is in the run. Zero `enough`: it is not killed.
std::uint64_t write_until(const std::filesystem::path& folder, std::uint64_t all,
                          std::uint64_t enough) {
  int ends[2];
  if (::pipe(ends) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    write_on(folder, all, ends[1]);
  }
  ::close(ends[1]);
  std::uint64_t said = 0;
  for (std::uint64_t done = 0; ::read(ends[0], &done, sizeof done) == sizeof done;) {
    said = done;
    if (enough != 0 && said >= enough) {
      enough = 0;
      ::kill(child, SIGKILL);
    }
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
  return said;
}

// REPRISE_LONG_RECORDS=1: ten million records and ten kills.
TEST_F(cut_off_test, a_run_whose_writer_is_killed_again_and_again_has_each_record_once) {
  const bool long_form = std::getenv("REPRISE_LONG_RECORDS") != nullptr;
  const std::uint64_t all = long_form ? 10'000'000 : 60'000;
  const std::uint64_t kills = long_form ? 10 : 4;
  const scratch_folder roomy{long_form};
  folder = roomy.path() / "run1";
  for (std::uint64_t kill = 1; kill <= kills; ++kill) {
    const std::uint64_t said = write_until(folder, all, all * kill / (kills + 1));
    const recorded_run run{folder};
    ASSERT_EQ(run.state(), run_state::cut_off);
    ASSERT_GE(run.records(), said) << "a batch that was written is gone";
  }
  EXPECT_EQ(write_until(folder, all, 0), all);
  std::uint64_t next = 0;
  std::uint64_t wrong = 0;
  const recorded_run run{folder};
  run.read({}, [&](const tap_record& record) {
    if (owned_record{record} != record_number(next++)) ++wrong;
  });
  EXPECT_EQ(run.state(), run_state::closed);
  EXPECT_EQ(next, all);
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace reprise::test
