// What the tests of records share: records by number, records that own what they hold, and a sink
// that does as a test says.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <ostream>
#include <span>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "reprise/records/record_sink.hpp"
#include "tests/support/observe.hpp"

namespace reprise::test {

// A record that outlives the call it came in.
struct owned_record {
  std::uint64_t run = 0, step = 0, replay = 0;
  std::string kind;
  int layer = 0, shard = 0, shards = 1, shard_axis = -1;
  record_content content = record_content::rows;
  std::uint64_t request = 0;
  std::int64_t first_row = 0, rows = 0, place = 0;
  dtype type = dtype::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;

  owned_record() = default;
  explicit owned_record(const tap_record& r)
      : run{r.run},
        step{r.step},
        replay{static_cast<std::uint64_t>(r.replay)},
        kind{r.kind},
        layer{r.layer},
        shard{r.shard},
        shards{r.shards},
        shard_axis{r.shard_axis},
        content{r.content},
        request{r.request},
        first_row{r.first_row},
        rows{r.rows},
        place{r.place},
        type{r.type},
        shape{r.shape.begin(), r.shape.end()},
        bytes{r.bytes.begin(), r.bytes.end()} {}

  tap_record view() const {
    return {run,     step,    replay_id{replay}, kind, layer, shard, shards, shard_axis,
            content, request, first_row,         rows, place, type,  shape,  bytes};
  }
  bool operator==(const owned_record&) const = default;
};

inline void PrintTo(const owned_record& r, std::ostream* to) {
  *to << point_name(r.view()) << " step " << r.step << " request " << r.request << " token "
      << r.first_row << ", " << r.bytes.size() << " bytes";
}

inline std::vector<owned_record> owned(std::span<const tap_record> records) {
  std::vector<owned_record> all;
  for (const tap_record& record : records) all.emplace_back(record);
  return all;
}

inline std::vector<tap_record> views(const std::vector<owned_record>& records) {
  std::vector<tap_record> all;
  for (const owned_record& record : records) all.push_back(record.view());
  return all;
}

// The n-th record: every field follows from n, so that two of them are never mistaken. Four points,
// one of them in two shards, ten requests, three element types, one to three rows.
inline owned_record record_number(std::uint64_t n) {
  owned_record made;
  made.run = 17;
  made.step = n / 8;
  made.replay = n + 1;
  made.kind = n % 4 == 3 ? "final_norm" : n % 4 == 2 ? "resid_pre_probe" : "resid_pre";
  made.layer = n % 4 == 3 ? -1 : static_cast<int>(n % 4);
  if (n % 4 == 3) {
    made.shard = static_cast<int>(n / 4 % 2);
    made.shards = 2;
    made.shard_axis = 1;
  }
  made.content = n % 4 == 2 ? record_content::scores : record_content::rows;
  made.request = n % 10;
  made.first_row = static_cast<std::int64_t>(n / 10);
  made.rows = 1 + static_cast<std::int64_t>(n % 3);
  made.place = static_cast<std::int64_t>(n % 5);
  made.type = n % 3 == 0 ? dtype::f32 : n % 3 == 1 ? dtype::bf16 : dtype::i64;
  made.shape = {made.rows, 4};
  made.bytes.resize(static_cast<std::size_t>(made.rows) * 4 * size_of(made.type));
  for (std::size_t i = 0; i < made.bytes.size(); ++i) {
    made.bytes[i] = static_cast<std::byte>((n * 31 + i * 7) & 0x7fU);
  }
  return made;
}

inline std::vector<owned_record> records_numbered(std::uint64_t first, std::uint64_t count) {
  std::vector<owned_record> all;
  for (std::uint64_t n = first; n < first + count; ++n) all.push_back(record_number(n));
  return all;
}

// How many records go past a writer or a server that is killed again and again: few, or in the long
// form as many as the variable REPRISE_RECORDS says.
inline bool is_long_form() {
  return std::getenv("REPRISE_RECORDS") != nullptr;
}
inline std::uint64_t records_to_send(std::uint64_t few) {
  return is_long_form() ? std::stoull(std::getenv("REPRISE_RECORDS")) : few;
}

// The number that a record was made from.
inline std::uint64_t number_of(const tap_record& record) {
  return static_cast<std::uint64_t>(record.replay) - 1;
}

// What a test sees of a sink, from its own thread.
class sink_log {
 public:
  void note(std::span<const tap_record> records) {
    const std::lock_guard held{guard_};
    for (const tap_record& record : records) got_.emplace_back(record);
    changed_.notify_all();
  }
  void note(const std::string& event) {
    const std::lock_guard held{guard_};
    events_.push_back(event);
    changed_.notify_all();
  }
  std::vector<owned_record> got() const {
    const std::lock_guard held{guard_};
    return got_;
  }
  std::vector<std::string> events() const {
    const std::lock_guard held{guard_};
    return events_;
  }
  // Fails the test where they do not come: that is a hang.
  void await(std::size_t records) {
    std::unique_lock held{guard_};
    const bool came =
        changed_.wait_for(held, std::chrono::seconds{30}, [&] { return got_.size() >= records; });
    if (!came) ADD_FAILURE() << "only " << got_.size() << " of " << records << " records came";
  }
  void await_event(const std::string& event) {
    std::unique_lock held{guard_};
    const bool came = changed_.wait_for(held, std::chrono::seconds{30}, [&] {
      return std::find(events_.begin(), events_.end(), event) != events_.end();
    });
    if (!came) ADD_FAILURE() << "never came to " << event;
  }

 private:
  mutable std::mutex guard_;
  std::condition_variable changed_;
  std::vector<owned_record> got_;
  std::vector<std::string> events_;
};

// What a scripted sink does before it takes what it is given; each may throw.
struct sink_script {
  std::function<void(std::string_view)> open = [](std::string_view) {};
  std::function<void(std::span<const tap_record>)> write = [](std::span<const tap_record>) {};
  std::function<void()> flush = [] {};
  std::function<void()> close = [] {};
};

class scripted_sink final : public record_sink {
 public:
  explicit scripted_sink(std::shared_ptr<sink_log> log, sink_script script = {})
      : log_{std::move(log)}, script_{std::move(script)} {}

  void open(std::string_view run) override {
    log_->note("open " + std::string{run});
    script_.open(run);
  }
  void write(std::span<const tap_record> records) override {
    script_.write(records);
    log_->note(records);
  }
  void flush() override {
    script_.flush();
    log_->note("flush");
  }
  void close() override {
    log_->note("close");
    script_.close();
  }

 private:
  std::shared_ptr<sink_log> log_;
  sink_script script_;
};

// A folder of this test's own, gone with it; in memory where there is such a place, since a disk
// takes a hundred times as long for thousands of small files.
class scratch_folder {
 public:
  explicit scratch_folder(bool on_disk = false) {
    const bool in_memory = !on_disk && ::access("/dev/shm", W_OK) == 0;
    std::string pattern = (in_memory ? "/dev/shm/" : testing::TempDir()) + "reprise-records-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  scratch_folder(const scratch_folder&) = delete;
  scratch_folder& operator=(const scratch_folder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// The line of what `call` throws, which must be an `Error`.
template <class Error, class Call>
std::string line_of(Call&& call) {
  std::string line = message_of<Error>(std::forward<Call>(call));
  EXPECT_EQ(line.find('\n'), std::string::npos) << line;
  return line;
}

}  // namespace reprise::test
