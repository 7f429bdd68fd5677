// The shadow of memory by itself: pieces, orders and lives, without a device.
#include "reprise/sim/watched_memory.hpp"

#include "tests/sim/simulated.hpp"

namespace reprise::test {
namespace {

using sim::lane_place;
using sim::trespass;
using sim::vector_clock;
using sim::watched_memory;

// Works on two lanes, 0 and 1, each behind the works of its own lane and of those it has joined.
class two_lanes : public testing::Test {
 protected:
  struct worker {
    sim::lane_id lane;
    std::uint32_t step = 0;
    vector_clock clock;
  };

  sim::stamp next(worker& who) {
    const lane_place at{who.lane, ++who.step};
    who.clock.advance_to(at);
    return {at, std::make_shared<const sim::party>(
                    sim::party{"lane " + std::to_string(who.lane), who.step, false})};
  }

  std::vector<trespass::kind> touch(worker& who, std::size_t first, std::size_t bytes,
                                    bool writes) {
    std::vector<trespass::kind> seen;
    const sim::stamp me = next(who);
    memory.touch(who.clock, me, block + first, bytes, writes,
                 [&](const trespass& t) { seen.push_back(t.what); });
    return seen;
  }
  std::vector<trespass::kind> change(worker& who, block_change to, std::size_t first,
                                     std::size_t bytes) {
    std::vector<trespass::kind> seen;
    const sim::stamp me = next(who);
    memory.change(who.clock, me, to, block + first, bytes, "pool",
                  [&](const trespass& t) { seen.push_back(t.what); });
    return seen;
  }

  using kinds = std::vector<trespass::kind>;
  static constexpr auto race = trespass::kind::race;
  static constexpr auto unwritten = trespass::kind::unwritten;
  static constexpr auto given_back = trespass::kind::given_back;

  watched_memory memory;
  std::byte* block = memory.allocate(memory_kind::device, 1024, false);
  worker a{0, 0, {}};
  worker b{1, 0, {}};
};

TEST_F(two_lanes, race_where_their_pieces_overlap_and_nowhere_else) {
  EXPECT_EQ(touch(a, 0, 100, true), kinds{});
  EXPECT_EQ(touch(b, 100, 100, true), kinds{});
  EXPECT_EQ(touch(b, 99, 1, false), kinds{race});
  EXPECT_EQ(touch(b, 50, 100, true), kinds{race});
  EXPECT_EQ(touch(a, 150, 50, false), kinds{race});
}

TEST_F(two_lanes, do_not_race_behind_one_another) {
  EXPECT_EQ(touch(a, 0, 100, true), kinds{});
  b.clock.join(a.clock);
  EXPECT_EQ(touch(b, 0, 100, false), kinds{});
  EXPECT_EQ(touch(b, 0, 100, true), kinds{});
  EXPECT_EQ(touch(a, 0, 10, false), kinds{race});
}

TEST_F(two_lanes, may_read_side_by_side_and_a_write_comes_behind_both) {
  EXPECT_EQ(touch(a, 0, 8, true), kinds{});
  b.clock.join(a.clock);
  EXPECT_EQ(touch(a, 0, 8, false), kinds{});
  EXPECT_EQ(touch(b, 0, 8, false), kinds{});
  EXPECT_EQ(touch(b, 0, 8, true), kinds{race}) << "a has read it, and b does not wait for that";
}

TEST_F(two_lanes, read_what_was_written_only) {
  EXPECT_EQ(touch(a, 8, 8, true), kinds{});
  EXPECT_EQ(touch(a, 0, 16, false), kinds{unwritten});
  EXPECT_EQ(touch(a, 8, 8, false), kinds{});
  EXPECT_EQ(change(a, block_change::taken, 0, 16), kinds{});
  EXPECT_EQ(touch(a, 8, 8, false), kinds{unwritten}) << "taken anew, it holds nothing";
}

TEST_F(two_lanes, touch_nothing_that_was_given_back) {
  EXPECT_EQ(touch(a, 0, 64, true), kinds{});
  EXPECT_EQ(change(a, block_change::freed, 16, 16), kinds{});
  EXPECT_EQ(touch(a, 0, 16, false), kinds{});
  EXPECT_EQ(touch(a, 8, 16, false), kinds{given_back});
  EXPECT_EQ(touch(a, 16, 16, true), kinds{given_back});
  b.clock.join(a.clock);
  EXPECT_EQ(change(b, block_change::taken, 16, 16), kinds{});
  EXPECT_EQ(touch(b, 16, 16, true), kinds{});
}

TEST_F(two_lanes, see_a_block_given_back_while_the_other_uses_it) {
  EXPECT_EQ(touch(a, 0, 64, true), kinds{});
  EXPECT_EQ(change(b, block_change::freed, 0, 64), kinds{race});
}

TEST_F(two_lanes, copy_what_nobody_wrote_as_such) {
  EXPECT_EQ(touch(a, 0, 4, true), kinds{});
  kinds seen;
  const sim::stamp me = next(a);
  memory.copy(a.clock, me, block, block + 512, 8,
              [&](const trespass& t) { seen.push_back(t.what); });
  EXPECT_EQ(seen, kinds{});
  EXPECT_EQ(touch(a, 512, 4, false), kinds{});
  EXPECT_EQ(touch(a, 512, 8, false), kinds{unwritten});
}

TEST_F(two_lanes, touch_one_block_and_not_past_its_end) {
  EXPECT_EQ(touch(a, 1020, 4, true), kinds{});
  EXPECT_EQ(touch(a, 1020, 5, true), kinds{given_back});
  std::byte* const gone = memory.allocate(memory_kind::device, 64, false);
  EXPECT_TRUE(memory.release(gone));
  EXPECT_FALSE(memory.release(gone)) << "twice";
  EXPECT_FALSE(memory.owns(gone, 1));
  EXPECT_EQ(memory.held(), 1024U);
}

TEST_F(two_lanes, get_a_released_address_again_where_that_is_asked_for) {
  std::byte* const first = memory.allocate(memory_kind::device, 64, true);
  memory.release(first);
  EXPECT_NE(memory.allocate(memory_kind::device, 64, false), first);
  EXPECT_NE(memory.allocate(memory_kind::device, 128, true), first) << "another size";
  EXPECT_EQ(memory.allocate(memory_kind::device, 64, true), first);
}

}  // namespace
}  // namespace reprise::test
