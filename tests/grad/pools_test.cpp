// The memory of frames: what a replay revokes, what dies with an op, and what many frames cost.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "reprise/device/memory_report.hpp"
#include "reprise/grad/frame_memory.hpp"
#include "reprise/grad/revocations.hpp"
#include "tests/grad/support.hpp"

namespace reprise::test {
namespace {

// All replays that ever were.
class naive_revocations {
 public:
  void overwritten(std::uint64_t index, std::uint64_t now) { all_.emplace_back(index, now); }
  bool is_void(std::uint64_t index, std::uint64_t ticket) const {
    return std::ranges::any_of(
        all_, [&](const auto& one) { return one.first < index && one.second > ticket; });
  }

 private:
  std::vector<std::pair<std::uint64_t, std::uint64_t>> all_;
};

TEST(revocations, are_those_of_a_list_of_all_replays) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random{seed};
    const auto below = [&](std::uint64_t n) { return random() % n; };
    revocations seen;
    naive_revocations model;
    std::vector<std::uint64_t> living;
    std::map<std::uint64_t, std::uint64_t> owner;  // by frame: its last ticket
    std::uint64_t next_frame = 1;
    std::uint64_t now = 1;
    for (int i = 0; i < 400; ++i) {
      const std::uint64_t dice = below(10);
      if (living.empty() || (dice < 2 && living.size() < 30)) {
        living.push_back(next_frame++);
        owner[living.back()] = now++;
      } else if (dice < 8) {
        const std::uint64_t index = living[below(living.size())];
        seen.overwritten(index, ticket_id{now});
        model.overwritten(index, now++);
        if (dice < 6) owner[index] = now++;  // else its forward failed
      } else {
        living.erase(living.begin() + static_cast<std::ptrdiff_t>(below(living.size())));
        if (dice == 9) {
          seen.prune(living);
          ASSERT_LE(seen.size(), living.size());
        }
      }
      for (const std::uint64_t index : living) {
        ASSERT_EQ(seen.is_void(index, ticket_id{owner[index]}), model.is_void(index, owner[index]))
            << "frame " << index << " after " << i << " events";
      }
    }
  }
}

TEST(revocations, of_replays_in_order_are_as_many_as_there_are_frames) {
  revocations seen;
  std::uint64_t now = 1;
  for (int step = 0; step < 10; ++step) {
    for (std::uint64_t frame = 1; frame <= 1000; ++frame) {
      seen.overwritten(frame, ticket_id{now++});
      ASSERT_FALSE(seen.is_void(frame, ticket_id{now++}));
    }
    EXPECT_EQ(seen.size(), 1000U);
  }
  seen.overwritten(1, ticket_id{now++});
  EXPECT_EQ(seen.size(), 1U) << "it says all that those behind it said";
}

class frame_pools : public grad_case {};

REPRISE_ON_EACH_DEVICE(frame_pools);

TEST_P(frame_pools, hand_out_memory_that_nobody_else_has) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random{seed};
    frame_memory memory{dev(), desk.budget, "frames under test"};
    std::map<std::byte*, std::size_t> taken;
    for (int i = 0; i < 200; ++i) {
      if (random() % 3 != 0 || taken.empty()) {
        const std::size_t bytes = 1 + random() % 5000;
        const std::span<std::byte> got = memory.take(bytes, s(), std::source_location::current());
        ASSERT_GE(got.size(), bytes);
        const auto next = taken.lower_bound(got.data());
        if (next != taken.end()) {
          ASSERT_LE(got.data() + got.size(), next->first);
        }
        if (next != taken.begin()) {
          const auto before = std::prev(next);
          ASSERT_LE(before->first + before->second, got.data());
        }
        taken.emplace(got.data(), got.size());
      } else {
        const auto one =
            std::next(taken.begin(), static_cast<std::ptrdiff_t>(random() % taken.size()));
        memory.give_back({one->first, one->second});
        taken.erase(one);
      }
      EXPECT_EQ(desk.budget.held(), memory.bytes());
    }
    for (const auto& [begin, bytes] : taken) memory.give_back({begin, bytes});
    // What was given back is whole again.
    const std::size_t held = memory.bytes();
    for (int i = 0; i < 3; ++i) {
      const std::span<std::byte> half = memory.take(held / 4, s(), std::source_location::current());
      EXPECT_EQ(memory.bytes(), held);
      memory.give_back(half);
    }
    memory.drop_all();
    EXPECT_EQ(memory.bytes(), 0U);
    EXPECT_EQ(desk.budget.held(), 0U);
  }
}

TEST_P(frame_pools, grow_within_the_budget_or_not_at_all) {
  byte_budget small{100'000};
  frame_memory memory{dev(), small, "frames under test"};
  const auto here = std::source_location::current();
  const std::span<std::byte> first = memory.take(60'000, s(), here);
  const std::string refused =
      message_of<usage_error>([&] { (void)memory.take(60'000, s(), here); });
  EXPECT_TRUE(has(refused, "no room for")) << refused;
  EXPECT_TRUE(has(refused, "'frames under test'")) << refused;
  EXPECT_LE(small.held(), small.limit());
  const std::size_t held = small.held();
  EXPECT_EQ(held, memory.bytes());
  (void)memory.take(30'000, s(), here);  // a smaller one fits, though it may not grow as it likes
  EXPECT_LE(small.held(), small.limit());
  memory.give_back(first);
  (void)memory.take(60'000, s(), here);
}

TEST_P(frame_pools, are_shared_until_the_first_backward_and_private_behind_it) {
  const std::shared_ptr<lane> here = lane::of(s());
  subject first{desk, op_kind::scaled, {}, {}, "first"};
  subject second{desk, op_kind::rewinding, {}, {}, "second"};
  const subject::call pending = first.forward(1);
  const std::shared_ptr<frame_memory> shared = here->memory_for_a_frame(desk.budget);
  EXPECT_EQ(shared->frames().size(), 1U);
  (void)second.forward(2);
  EXPECT_EQ(shared->frames().size(), 2U);
  EXPECT_FALSE(shared->is_closed());
  (void)first.backward(pending, 1);
  EXPECT_TRUE(shared->is_closed());
  subject third{desk, op_kind::scaled, {}, {}, "third"};
  subject fourth{desk, op_kind::scaled, {}, {}, "fourth"};
  third.step(3);
  fourth.step(4);
  EXPECT_EQ(shared->frames().size(), 2U);
}

// What a thousand ops leave behind, here and there.
TEST_P(frame_pools, and_lists_are_no_longer_after_a_thousand_ops_than_after_ten) {
  const int many = sim::controls_of(dev()) != nullptr ? 100 : 1000;
  const std::shared_ptr<lane> here = lane::of(s());
  struct sizes {
    std::size_t unreaped, results, budget, metrics, frames, revoked, pinned, executables;
    bool operator==(const sizes&) const = default;
  };
  const auto sizes_now = [&] {
    here->drain(std::source_location::current());
    const auto memory = here->memory_for_a_frame(desk.budget);
    const memory_report report = report_memory(dev());
    std::size_t results = 0;
    for (const pool_figures& one : report.pools) {
      if (one.label != "test") results += one.used;
    }
    return sizes{here->unreaped(),        results,
                 desk.budget.held(),      grad_metrics().size(),
                 memory->frames().size(), memory->voided.size(),
                 report.pinned,           report.executables};
  };
  std::optional<sizes> after_ten;
  std::size_t most_unreaped = 0;
  for (int i = 1; i <= many; ++i) {
    {
      subject of{desk, i % 2 == 0 ? op_kind::scaled : op_kind::noisy};
      const subject::call made = of.forward(i);
      if (i % 3 != 0) (void)of.backward(made, i);
      if (i % 3 == 2) (void)of.backward(of.forward(i + 1), i);
    }
    most_unreaped = std::max(most_unreaped, here->unreaped());
    if (i == 10) after_ten = sizes_now();
  }
  EXPECT_EQ(sizes_now(), *after_ten);
  EXPECT_LE(most_unreaped, 20U);
  EXPECT_EQ(desk.budget.held(), 0U);
}

// One layer of many, in the middle.
TEST_P(frame_pools, of_a_thousand_frames_cost_a_replay_what_ten_do) {
  const auto calls_of_a_step = [&](int layers) {
    std::vector<std::unique_ptr<subject>> net;
    std::vector<subject::call> calls;
    const auto forward = [&] {
      calls.clear();
      for (int i = 0; i < layers; ++i) {
        calls.push_back(net[static_cast<std::size_t>(i)]->forward(i % 20));
      }
    };
    for (int i = 0; i < layers; ++i)
      net.push_back(std::make_unique<subject>(desk, op_kind::scaled));
    forward();
    for (int i = layers - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      (void)net[at]->backward(calls[at], i % 20);
    }
    forward();
    const auto middle = static_cast<std::size_t>(layers / 2);
    std::vector<std::string> made;
    subject& one = *net[middle];
    one.expect_output(calls[middle]);
    const grad_result got = one.backward(calls[middle], 7);
    made.push_back(one.calls());
    one.expect_gradients(calls[middle], got, 7);
    const subject::call again = one.forward(8);
    made.push_back(one.calls());
    const grad_result stale = one.backward(calls[middle], 8);
    made.push_back(one.calls());
    one.expect_gradients(calls[middle], stale, 8);
    EXPECT_EQ(one.op().counts().stale_replay, 1U);
    return made;
  };
  const std::vector<std::string> few = calls_of_a_step(10);
  EXPECT_EQ(few[0], "launch 1");
  EXPECT_EQ(few[1], "launch 1");
  EXPECT_EQ(few[2], "launch 2");
  EXPECT_EQ(calls_of_a_step(sim::controls_of(dev()) != nullptr ? 200 : 1000), few);
}

}  // namespace
}  // namespace reprise::test
