// What the field has met with rows: given to the wrong request, padding, tables that lie.
#include <random>

#include "reprise/tap/take_rows.hpp"
#include "tests/support/observe.hpp"
#include "tests/tap/support.hpp"

namespace reprise {
namespace {

using test::tapped_model;

class row_cases : public test::monitored {};
MONITORED_ON_ALL_DEVICES(row_cases);

// Requests come and go, and the batch is in another order each time.
std::vector<request_rows> random_batch(std::mt19937& dice, std::int64_t most_rows, bool packed) {
  std::vector<std::int64_t> counts;
  std::int64_t rows = 0;
  while (counts.size() < 5) {
    const auto count = static_cast<std::int64_t>(dice() % 4);
    if (rows + count > most_rows) break;
    rows += count;
    counts.push_back(count);
  }
  std::vector<request_rows> batch;
  std::int64_t first = packed ? 0 : most_rows - rows;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    batch.push_back({dice() % 1000 * 8 + i, first, counts[i], static_cast<std::int64_t>(i),
                     static_cast<std::int64_t>(dice() % 50)});
    first += counts[i];
  }
  std::shuffle(batch.begin(), batch.end(), dice);
  return batch;
}

TEST_P(row_cases, T05_each_row_is_its_requests_own_for_any_joining_and_leaving) {
  std::mt19937 dice{17};
  for (const row_mode mode : {row_mode::all(), row_mode::real(), row_mode::last()}) {
    tapped_model model{2, 4};
    monitor eye{on.opened, small()};
    eye.watch({"*", mode});
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    steps = 0;
    expected.clear();
    book->records.clear();
    for (int i = 0; i < 70; ++i) {
      std::vector<request_rows> batch = random_batch(dice, 8, i % 2 == 0);
      if (batch.empty()) batch.push_back({3, 0, 1, 0, 0});
      if (mode == row_mode::all()) {
        std::erase_if(batch, [](const request_rows& r) { return r.count == 0; });
        if (batch.empty()) batch.push_back({3, 0, 1, 0, 0});
      }
      run(cache, eye, model, 8, "*", mode.what(), batch);
    }
    eye.flush();
    expect_all();
    EXPECT_EQ(cache.counts().captured, 1U);
  }
}

TEST_P(row_cases, T14_padding_is_named_or_left_out_and_planned_so) {
  for (const row_mode mode : {row_mode::all(), row_mode::real()}) {
    tapped_model model{2, 4};
    monitor_options how = small();
    how.markers = false;
    monitor eye{on.opened, how};
    eye.watch({"resid_pre", mode});
    send_here(eye);
    replay_cache cache{on.opened};
    cache.observe(eye.observer());
    steps = 0;
    expected.clear();
    book->records.clear();
    std::uint64_t rows = 0;
    for (std::int64_t batch = 1; batch <= 4; ++batch) {
      std::vector<request_rows> requests;
      for (std::int64_t i = 0; i < batch; ++i) {
        requests.push_back({static_cast<std::uint64_t>(100 + i), i, 1, i, 7});
      }
      run(cache, eye, model, 4, "resid_pre", mode.what(), requests);
      rows += static_cast<std::uint64_t>(mode == row_mode::all() ? 4 : batch);
    }
    eye.flush();
    expect_all();
    EXPECT_EQ(eye.counts().reserved_bytes, rows * 2 * 16);
    EXPECT_EQ(eye.counts().record_bytes, rows * 2 * 16);
    for (const auto& record : book->records) {
      EXPECT_TRUE(mode == row_mode::all() || record.about.request != no_request);
    }
  }
}

// The kernel itself, given words that no plan would write.
class row_tables : public test::monitored {
 protected:
  // Rows of 16 bytes; what was published, and the whole ring behind it.
  std::pair<std::uint64_t, std::vector<std::uint8_t>> taken_of(
      const std::vector<std::int64_t>& table, std::uint64_t most) {
    constexpr std::size_t capacity = 128;
    std::vector<std::uint64_t> words(descriptor_words, 0);
    words[descriptor::position] = 96;  // so that most of it is behind the end
    words[descriptor::capacity] = capacity;
    words[descriptor::most] = most;
    words[descriptor::tag] = 5;
    words[descriptor::table] = descriptor_words;
    for (const std::int64_t word : table) words.push_back(static_cast<std::uint64_t>(word));
    std::vector<std::uint8_t> rows(4 * 16);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<std::uint8_t>(i + 1);

    pool memory{on.opened, "tables"};
    const buffer<std::uint8_t> source{memory, rows.size(), on.work};
    const buffer<std::uint64_t> plan{memory, words.size(), on.work};
    const buffer<std::uint8_t> ring{memory, capacity, on.work};
    const buffer<std::uint64_t> taken{memory, 1, on.work};
    const auto up = [&]<class T>(const std::vector<T>& from, const buffer<T>& to) {
      copy(on.work, read<T>{view<const T>{from.data(), from.size()}}, write<T>{to});
    };
    up(rows, source);
    up(words, plan);
    up(std::vector<std::uint64_t>{0}, taken);
    up(std::vector<std::uint8_t>(capacity, 0), ring);
    launch(on.work, take_rows, read(source), read<std::int64_t>{view<const std::int64_t>{}},
           read(plan), write<std::uint8_t>{ring}, write<std::uint64_t>{taken}, std::uint64_t{0},
           std::uint64_t{3}, std::uint64_t{16});
    std::vector<std::uint8_t> back(capacity);
    copy(on.work, read<std::uint8_t>{ring},
         write<std::uint8_t>{view<std::uint8_t>{back.data(), capacity}});
    std::uint64_t word = 0;
    copy(on.work, read<std::uint64_t>{taken}, write<std::uint64_t>{view<std::uint64_t>{&word, 1}});
    on.work.synchronize();
    return {word, back};
  }
  static bool clamped(std::uint64_t word) { return (word & publication::clamped) != 0; }
};
MONITORED_ON_ALL_DEVICES(row_tables);

TEST_P(row_tables, T17_that_lie_are_cut_to_what_is_there_and_it_is_said) {
  const auto of_row = [](std::size_t row, std::size_t i) {
    return static_cast<std::uint8_t>(row * 16 + i + 1);
  };
  {
    const auto [word, ring] = taken_of({2, 3, 1, 0, 2}, 64);
    EXPECT_EQ(word, publication::word(5, 3, 48, false));
    for (std::size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(ring[96 + i], of_row(3, i));
      EXPECT_EQ(ring[112 + i], of_row(0, i));
      EXPECT_EQ(ring[i], of_row(1, i)) << "goes on at the beginning";
      EXPECT_EQ(ring[16 + i], 0);
    }
  }
  EXPECT_EQ(taken_of({0}, 64).first, publication::word(5, 3, 0, false)) << "no rows: zero bytes";
  EXPECT_EQ(taken_of({-1}, 64).first, 0U) << "off: nothing";
  EXPECT_EQ(taken_of({1000, 0, 1}, 64).first, publication::word(5, 3, 16, true));
  EXPECT_EQ(taken_of({-2, 0, 1}, 64).first, publication::word(5, 3, 0, true));
  EXPECT_EQ(taken_of({1, 2, 5}, 64).first, publication::word(5, 3, 32, true));
  EXPECT_EQ(taken_of({1, 9, 1}, 64).first, publication::word(5, 3, 0, true));
  EXPECT_EQ(taken_of({1, -1, 1}, 64).first, publication::word(5, 3, 0, true));
  EXPECT_EQ(taken_of({1, 0, -4}, 64).first, publication::word(5, 3, 0, true));
  EXPECT_EQ(taken_of({1, 0, 4}, 32).first, publication::word(5, 3, 32, true)) << "reserved";
  EXPECT_EQ(taken_of({1, std::numeric_limits<std::int64_t>::max(), 1}, 64).first,
            publication::word(5, 3, 0, true));
  const auto [word, ring] = taken_of({2, 0, 1, 2, 9}, 48);
  EXPECT_TRUE(clamped(word));
  EXPECT_EQ(publication::bytes_of(word), 48U);
  EXPECT_EQ(ring[16], 0) << "nothing behind what was reserved";
}

}  // namespace
}  // namespace reprise
