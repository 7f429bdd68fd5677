// A disk without room: nothing is half written, the run goes on, and each record is accounted for.
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>

#include "reprise/records/sink_queue.hpp"
#include "tests/records/run_support.hpp"
#include "tests/records/virtual_time.hpp"

namespace reprise::test {
namespace {

// A disk that has so many bytes left; it writes what fits, as a disk does.
struct small_disk {
  std::uint64_t left = 0;
  bool cannot_cut = false;
  int syncs_that_fail = 0;

  file_layer files() {
    file_layer made = system_files();
    made.write = [this, write = made.write](int file, std::span<const std::byte> bytes) {
      if (left == 0) return std::int64_t{-ENOSPC};
      const std::int64_t written =
          write(file, bytes.first(std::min<std::size_t>(bytes.size(), left)));
      left -= static_cast<std::uint64_t>(written);
      return written;
    };
    made.truncate = [this, truncate = made.truncate](int file, std::uint64_t bytes) {
      return cannot_cut ? -EIO : truncate(file, bytes);
    };
    made.sync = [this, sync = made.sync](int file) {
      return syncs_that_fail-- > 0 ? -ENOSPC : sync(file);
    };
    return made;
  }
};

class full_disk_test : public run_test {
 protected:
  small_disk disk;
};

TEST_F(full_disk_test, leaves_nothing_half_written_wherever_the_room_ends) {
  // The size of a run of three batches, and then every smaller disk.
  disk.left = 1'000'000;
  {
    const auto sink = arrow_sink(folder, {.files = disk.files()});
    sink->open("run1");
    write_batches(*sink, 0, 3, 1);
    sink->close();
  }
  const std::uint64_t whole = 1'000'000 - disk.left;
  for (std::uint64_t room = 0; room < whole; room += 7) {
    folder = scratch.path() / ("run" + std::to_string(room));
    disk.left = room;
    const auto sink = arrow_sink(folder, {.files = disk.files()});
    sink->open("run1");
    std::vector<owned_record> taken;
    for (std::uint64_t n = 0; n < 3; ++n) {
      try {
        sink->write(views(records_numbered(n, 1)));
        taken.push_back(record_number(n));
      } catch (const sink_error& full) {
        EXPECT_TRUE(has(full.what(), "free some space")) << full.what();
      }
    }
    ASSERT_EQ(read_back(folder), taken) << "room for " << room;
    disk.left = 1'000'000;  // somebody made room
    write_batches(*sink, 3, 2, 1);
    sink->close();
    taken.push_back(record_number(3));
    taken.push_back(record_number(4));
    ASSERT_EQ(read_back(folder), taken) << "room for " << room;
  }
}

TEST_F(full_disk_test, that_cannot_be_cut_back_goes_on_in_a_new_segment) {
  disk.left = 2'500;
  disk.cannot_cut = true;
  const auto sink = arrow_sink(folder, {.files = disk.files()});
  sink->open("run1");
  std::vector<owned_record> taken;
  bool failed = false;
  for (std::uint64_t n = 0; n < 12; ++n) {
    try {
      sink->write(views(records_numbered(n, 1)));
      taken.push_back(record_number(n));
    } catch (const sink_error&) {
      failed = true;
      disk.left = 1'000'000;
    }
  }
  sink->close();
  EXPECT_TRUE(failed);
  EXPECT_EQ(taken.size(), 11U);
  EXPECT_EQ(segments_of(folder).size(), 2U);
  EXPECT_EQ(read_back(folder), taken);
}

TEST_F(full_disk_test, ends_no_run_and_counts_what_it_lost) {
  disk.left = 20'000;
  virtual_time time{true};
  sink_queue_options options{.name = "run1", .batch_records = 10, .attempts = 2};
  options.loss = when_lost::count;
  options.clock = time.clock();
  sink_queue queue{arrow_sink(folder, {.files = disk.files()}), "run1", options};
  for (std::uint64_t n = 0; n < 200; n += 10) queue.publish(views(records_numbered(n, 10)));
  queue.flush();
  const std::uint64_t before = queue.counts().delivered;
  EXPECT_GT(before, 0U);
  EXPECT_LT(before, 200U);
  disk.left = 1'000'000;
  queue.publish(views(records_numbered(200, 10)));
  const std::string line = line_of<sink_error>([&] { queue.close(); });
  EXPECT_TRUE(has(line, "No space left on device")) << line;
  EXPECT_TRUE(has(line, "lost " + std::to_string(200 - before) + " of 210")) << line;
  const sink_counts counts = queue.counts();
  EXPECT_EQ(counts.delivered + counts.lost, 210U);
  const std::vector<owned_record> got = read_back(folder);
  EXPECT_EQ(got.size(), counts.delivered);
  EXPECT_EQ(got.back(), record_number(209));
  EXPECT_EQ(recorded_run{folder}.lost(), counts.lost) << "whoever reads it later is told";
}

TEST_F(full_disk_test, flush_says_that_nothing_is_sure_and_is_tried_again) {
  disk.left = 1'000'000;
  disk.syncs_that_fail = 1;
  virtual_time time{true};
  sink_queue_options options{.name = "run1", .attempts = 2};
  options.clock = time.clock();
  sink_queue queue{arrow_sink(folder, {.files = disk.files()}), "run1", options};
  queue.publish(views(records_numbered(0, 10)));
  queue.flush();
  EXPECT_EQ(queue.counts().retries, 1U);
  queue.close();
}

TEST_F(full_disk_test, is_survived_on_a_real_file_system_of_one_mebibyte) {
  std::filesystem::create_directory(folder);
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "a file system of 1 MiB can be mounted by root alone";
  }
  struct unmounted {
    std::filesystem::path at;
    ~unmounted() { ::umount2(at.c_str(), MNT_DETACH); }
  } const at_the_end{folder};
  const std::filesystem::path run = folder / "run";
  virtual_time time{true};
  sink_queue_options options{.name = "run1", .batch_records = 1'000, .attempts = 1};
  options.loss = when_lost::count;
  options.clock = time.clock();
  sink_queue queue{arrow_sink(run), "run1", options};
  for (std::uint64_t n = 0; n < 20'000; n += 100) queue.publish(views(records_numbered(n, 100)));
  EXPECT_TRUE(has(line_of<sink_error>([&] { queue.close(); }), "No space left"));
  const sink_counts counts = queue.counts();
  EXPECT_EQ(counts.published, 20'000U);
  EXPECT_EQ(counts.delivered + counts.lost, 20'000U);
  EXPECT_GT(counts.delivered, 1'000U);
  EXPECT_EQ(read_back(run).size(), counts.delivered);
}

}  // namespace
}  // namespace reprise::test
