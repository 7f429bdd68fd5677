#include "reprise/sdm/order.hpp"

#include "tests/sdm/chunk_calls.hpp"

namespace reprise::test {
namespace {

using words = std::vector<std::int32_t>;

void expect_same(const chunk_orders& got, const chunk_orders& want) {
  EXPECT_EQ(got.order, want.order);
  EXPECT_EQ(got.place, want.place);
  EXPECT_EQ(got.run_of, want.run_of);
  EXPECT_EQ(got.runs, want.runs);
  EXPECT_EQ(got.rows, want.rows);
  EXPECT_EQ(got.written, want.written);
}

class sdm_order_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, sdm_order_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(sdm_order_op, groups_the_events_of_a_slot_in_the_order_of_time) {
  // Tokens write slots {0, 2}, {1, 2}, {0, 1} and read {1}, {2}, {3}, of a stream that begins at
  // row 4; the stream before it names nothing of its own.
  sdm_case one{"by hand", {2, 4, 1, 3, 2, 1, 1, 4}, {}, {}, {}, {}, {}, {}};
  one.k_idx = {7, 8, 7, 8, 7, 8, 4, 6, 5, 6, 4, 5};
  one.q_idx = {7, 7, 7, 5, 6, 7};
  const chunk_orders got = order_on(bench(), one);
  const auto second = [](const words& all) {
    return words{all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end()};
  };
  EXPECT_EQ(second(got.order), (words{0, 6, 2, 3, 7, 1, 4, 5, 8, -1, -1, -1}));
  EXPECT_EQ(second(got.place), (words{0, 5, 2, 3, 6, 7, 1, 4, 8, -1, -1, -1}));
  EXPECT_EQ(second(got.run_of), (words{0, 2, 1, 1, 2, 2, 0, 1, 3, -1, -1, -1}));
  EXPECT_EQ(second(got.runs), (words{0, 2, 5, 8, 9, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(second(got.rows), (words{4, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(second(got.written), (words{0, 1, 2, -1, -1, -1, -1, -1, -1, -1, -1, -1}));
  EXPECT_EQ(got.order[0], -1);
}

TEST_P(sdm_order_op, gives_what_plain_loops_give) {
  for (const sdm_case& one : small_cases()) {
    SCOPED_TRACE(one.name);
    const chunk_orders want = plain_order(one);
    expect_same(order_on(bench(), one), want);
    expect_same(order_on(bench(), one, place::shifted), want);
  }
}

TEST_P(sdm_order_op, takes_as_many_events_and_slots_as_it_may) {
  for (const sdm_case& one : large_cases()) {
    SCOPED_TRACE(one.name);
    expect_same(order_on(bench(), one), plain_order(one));
  }
}

// The slot and the event of a key share 32 bits up to some number of slots, and no further.
TEST_P(sdm_order_op, keeps_the_last_slot_apart_from_none) {
  for (const std::int64_t slots : {(1 << 20) - 1, 1 << 20, 1 << 28, (1 << 30) + 1}) {
    SCOPED_TRACE(slots);
    // 4,096 events: 12 bits, and 20 for a slot.
    sdm_case one = random_case("last slots", {1, slots, 1, 1024, 2, 2, 1, 1024}, {.seed = 30});
    for (words* const all : {&one.k_idx, &one.q_idx}) {
      for (std::size_t i = 0; i < all->size(); i += 2) {
        (*all)[i] = static_cast<std::int32_t>(slots - 2);
        (*all)[i + 1] = static_cast<std::int32_t>(slots - 1);
      }
    }
    expect_same(order_on(bench(), one), plain_order(one));
  }
}

TEST_P(sdm_order_op, puts_each_event_in_one_run_and_each_run_on_one_row) {
  for (const sdm_case& one : small_cases()) {
    SCOPED_TRACE(one.name);
    const chunk_orders got = order_on(bench(), one);
    const auto events = static_cast<std::size_t>(one.sizes.events());
    std::size_t chunk = 0;
    each_chunk(one.sizes, [&](std::int64_t p, std::int64_t n) {
      const auto known = plain_events(one, p, n);
      const auto* const order = got.order.data() + chunk * events;
      const auto* const runs = got.runs.data() + chunk * (events + 1);
      const auto* const rows = got.rows.data() + chunk * events;
      ++chunk;
      std::vector<int> seen(events, 0);
      std::int32_t saved = 0;
      ASSERT_EQ(runs[0], 0);
      for (std::size_t run = 0; run < events; ++run) {
        ASSERT_LE(runs[run], runs[run + 1]);
        bool is_written = false;
        for (std::int32_t i = runs[run]; i < runs[run + 1]; ++i) {
          const auto event = static_cast<std::size_t>(order[i]);
          ++seen[event];
          is_written = is_written || known[event].is_write;
          ASSERT_EQ(known[event].row, rows[run]);
          if (i > runs[run]) {
            ASSERT_LT(order[i - 1], order[i]);
          }
        }
        if (run > 0 && rows[run] >= 0) {
          ASSERT_LT(rows[run - 1], rows[run]);
        }
        const std::int32_t written = got.written[(chunk - 1) * events + run];
        ASSERT_EQ(written, is_written ? saved++ : -1);
      }
      for (std::size_t e = 0; e < events; ++e) ASSERT_EQ(seen[e], known[e].row >= 0 ? 1 : 0);
    });
  }
}

TEST_P(sdm_order_op, of_no_tokens_is_empty) {
  const sdm_case none = random_case("none", {2, 4, 1, 0, 2, 2, 1, 8}, {});
  EXPECT_TRUE(order_on(bench(), none).runs.empty());
}

TEST_P(sdm_order_op, refuses_sizes_that_do_not_fit) {
  const sdm_case good = random_case("good", {1, 4, 1, 4, 2, 2, 1, 4}, {});
  EXPECT_NO_THROW(order_on(bench(), good));
  sdm_case bad = good;
  bad.k_idx.pop_back();
  EXPECT_THROW(order_on(bench(), bad), usage_error);
  bad = good;
  bad.q_idx.push_back(0);
  EXPECT_THROW(order_on(bench(), bad), usage_error);
  const auto idx = bench().put(good.k_idx);
  const auto room = bench().room<std::int32_t>(16);
  const read<std::int32_t> in{idx.span()};
  const write<std::int32_t> to{room.span()};  // one too few for the runs
  try {
    launch(bench().on(), sdm_order, in, in, to, to, to, to, to, to, good.sizes);
    FAIL() << "taken";
  } catch (const usage_error& refused) {
    EXPECT_STREQ(refused.what(), "sdm_order: runs has 16 elements; give a view of 17");
  }
  sdm_sizes large = good.sizes;
  large.chunk = most_sdm_events;
  EXPECT_THROW(launch(bench().on(), sdm_order, in, in, to, to, to, to, to, to, large), usage_error);
}

TEST(sdm_order, has_the_same_bits_on_any_number_of_threads) {
  op_bench alone{"cpu", 1};
  op_bench eight{"cpu", 8};
  const sdm_case one = random_case("many chunks", {3, 50, 1, 400, 8, 8, 1, 32}, {.seed = 31});
  expect_same(order_on(eight, one), order_on(alone, one));
}

TEST(sdm_order, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  for (const auto& cases : {small_cases(), large_cases()}) {
    for (const sdm_case& one : cases) {
      SCOPED_TRACE(one.name);
      expect_same(order_on(cuda, one), order_on(cpu, one));
    }
  }
}

}  // namespace
}  // namespace reprise::test
