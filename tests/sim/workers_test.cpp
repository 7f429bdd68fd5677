// The threads of a CPU body: every piece once, in whatever company.
#include "reprise/sim/workers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <limits>
#include <set>
#include <stdexcept>

namespace reprise::sim {
namespace {

// How often each item of [0, count) was visited, and in how many pieces.
struct visits {
  explicit visits(std::int64_t count) : of(static_cast<std::size_t>(count)) {}

  void add(std::int64_t first, std::int64_t last) {
    pieces.fetch_add(1);
    for (std::int64_t i = first; i < last; ++i) of[static_cast<std::size_t>(i)].fetch_add(1);
  }
  bool each_once() const {
    return std::ranges::all_of(of, [](const auto& n) { return n.load() == 1; });
  }

  std::vector<std::atomic<int>> of;
  std::atomic<int> pieces{0};
};

cpu_call call_of(workers& on) {
  return {{}, on.ref()};
}

constexpr std::array<std::int64_t, 14> many_counts{0,  1,  2,  3,   7,    8,    9,
                                                   31, 32, 33, 100, 1000, 1001, 65536};

TEST(workers, count_the_calling_thread) {
  EXPECT_EQ(workers{1}.threads(), 1);
  EXPECT_EQ(workers{3}.threads(), 3);
  EXPECT_EQ(workers{1}.ref().threads, 1);
}

TEST(workers, visit_each_item_once_for_any_count_and_any_number_of_threads) {
  for (const int threads : {1, 2, 3, 4, 7}) {
    workers team{threads};
    for (const std::int64_t count : many_counts) {
      visits seen{count};
      call_of(team).parallel_for(count, 1, [&](auto first, auto last) { seen.add(first, last); });
      ASSERT_TRUE(seen.each_once()) << count << " items, " << threads << " threads";
    }
  }
}

TEST(workers, cut_into_pieces_that_are_never_empty) {
  workers team{3};
  for (const std::int64_t count : many_counts) {
    if (count < 2) continue;
    std::atomic<int> empty{0};
    call_of(team).parallel_for(count, 1, [&](std::int64_t first, std::int64_t last) {
      if (first >= last) ++empty;
    });
    EXPECT_EQ(empty, 0) << count;
  }
}

TEST(workers, leave_what_is_not_worth_a_thread_to_the_caller) {
  workers team{4};
  visits seen{1000};
  std::thread::id ran_on;
  call_of(team).parallel_for(1000, 501, [&](std::int64_t first, std::int64_t last) {
    ran_on = std::this_thread::get_id();
    seen.add(first, last);
  });
  EXPECT_EQ(seen.pieces, 1);
  EXPECT_EQ(ran_on, std::this_thread::get_id());

  visits shared{1000};
  call_of(team).parallel_for(1000, 500, [&](auto first, auto last) { shared.add(first, last); });
  EXPECT_GT(shared.pieces, 1);
}

TEST(workers, take_any_grain) {
  workers team{2};
  for (const std::int64_t grain : {std::int64_t{-5}, std::int64_t{0}, std::int64_t{1},
                                   std::numeric_limits<std::int64_t>::max() / 2}) {
    visits seen{10};
    call_of(team).parallel_for(10, grain, [&](auto first, auto last) { seen.add(first, last); });
    EXPECT_TRUE(seen.each_once()) << grain;
  }
}

// Every thread of the team holds one item until all of them have come: only then does it end.
TEST(workers, work_at_the_same_time) {
  constexpr int threads = 4;
  workers team{threads};
  std::latch all_came{threads};
  std::mutex guard;
  std::set<std::thread::id> came;
  call_of(team).parallel_for(threads, 1, [&](std::int64_t, std::int64_t) {
    {
      const std::lock_guard lock{guard};
      came.insert(std::this_thread::get_id());
    }
    all_came.arrive_and_wait();
  });
  EXPECT_EQ(came.size(), static_cast<std::size_t>(threads));
}

TEST(workers, are_done_when_the_call_returns) {
  workers team{4};
  for (int round = 0; round < 300; ++round) {
    std::array<int, 64> plain{};  // not atomic: the return orders it
    call_of(team).parallel_for(64, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) plain[static_cast<std::size_t>(i)] = round;
    });
    ASSERT_TRUE(std::ranges::all_of(plain, [&](int n) { return n == round; }));
  }
}

// What an op does: each item from its own inputs. The cuts then leave no trace in the bits.
TEST(workers, leave_the_same_bits_however_many_they_are) {
  const auto computed_by = [](int threads) {
    workers team{threads};
    std::vector<float> out(10007);
    call_of(team).parallel_for(10007, 16, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        float sum = 0;
        for (int k = 1; k < 20; ++k) sum += 1.0F / static_cast<float>(i + k);
        out[static_cast<std::size_t>(i)] = sum;
      }
    });
    return out;
  };
  const std::vector<float> alone = computed_by(1);
  for (const int threads : {2, 3, 5}) EXPECT_EQ(computed_by(threads), alone) << threads;
}

TEST(workers, serve_a_body_that_calls_them_again) {
  workers team{4};
  const cpu_call call = call_of(team);
  visits seen{64 * 64};
  call.parallel_for(64, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      call.parallel_for(64, 1, [&](std::int64_t left, std::int64_t right) {
        seen.add(row * 64 + left, row * 64 + right);
      });
    }
  });
  EXPECT_TRUE(seen.each_once());
}

TEST(workers, serve_callers_from_many_threads_at_once) {
  workers team{3};
  constexpr int callers = 4;
  std::latch all_came{callers};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < callers; ++c) {
    threads.emplace_back([&] {
      all_came.arrive_and_wait();
      for (int round = 0; round < 200; ++round) {
        visits seen{257};
        call_of(team).parallel_for(257, 1, [&](auto first, auto last) { seen.add(first, last); });
        if (!seen.each_once()) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(workers, pass_on_what_a_piece_throws_when_all_are_done) {
  workers team{4};
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> inside{0};
    EXPECT_THROW(call_of(team).parallel_for(64, 1,
                                            [&](std::int64_t first, std::int64_t) {
                                              ++inside;
                                              if (first >= 32) {
                                                --inside;
                                                throw std::runtime_error{"no"};
                                              }
                                              --inside;
                                            }),
                 std::runtime_error);
    EXPECT_EQ(inside, 0) << "a piece runs on after the call";
  }
  visits seen{64};
  call_of(team).parallel_for(64, 1, [&](auto first, auto last) { seen.add(first, last); });
  EXPECT_TRUE(seen.each_once());
}

TEST(workers, take_a_body_that_is_const) {
  workers team{2};
  std::atomic<std::int64_t> sum{0};
  const auto body = [&](std::int64_t first, std::int64_t last) { sum += last - first; };
  call_of(team).parallel_for(1000, 1, body);
  EXPECT_EQ(sum, 1000);
}

TEST(workers, start_and_end_without_ever_working) {
  for (int round = 0; round < 50; ++round) const workers idle{4};
}

}  // namespace
}  // namespace reprise::sim
