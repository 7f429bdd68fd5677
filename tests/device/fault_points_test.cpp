// Fault points and landmarks of this room: each rare way that is chosen is taken and is right, and
// each place that a good simulation has to reach is told of.
#include "reprise/base/fault_points.hpp"

#include "tests/device/short_device.hpp"
#include "tests/device/support.hpp"
#include "tests/support/listening.hpp"

namespace reprise::test {
namespace {

class rare_ways : public testing::Test {
 protected:
  std::size_t idle() const { return device_ref{opened}.state().slabs->idle_bytes(); }
  std::byte* freed_by(stream_ref by, std::size_t bytes) { return block{memory, bytes, by}.data(); }

  short_memory state{.limit = 4096 * kib};
  device opened{std::make_unique<short_device>(open_bare("cpu"), state)};
  stream work{opened};
  stream other{opened};
  pool memory{opened, "test"};
};

TEST_F(rare_ways, are_not_taken_where_nobody_listens) {
  EXPECT_FALSE(fault_point("pool: grows although it could reuse"));
  const std::byte* const at = freed_by(work, 1000);
  EXPECT_EQ(freed_by(work, 1000), at);
}

TEST_F(rare_ways, that_are_not_chosen_are_not_taken_either) {
  const listening heard{{"another"}};
  EXPECT_FALSE(fault_point("one"));
  EXPECT_TRUE(fault_point("another"));
  EXPECT_EQ(heard["one"], 0U);
  EXPECT_EQ(heard["another"], 1U) << "a fault point that was taken is a landmark";
}

TEST_F(rare_ways, a_pool_grows_although_it_could_reuse) {
  const listening heard{{"pool: grows although it could reuse"}};
  const std::byte* const at = freed_by(work, 1000);
  const block again{memory, 1000, work};
  EXPECT_NE(again.data(), at);
  EXPECT_EQ(memory.bytes(), 128 * kib);
  EXPECT_EQ(heard["pool: grows although it could reuse"], 2U);
}

TEST_F(rare_ways, an_idle_slab_is_not_lent) {
  { const block gone{*std::make_unique<pool>(opened), 1000, work}; }
  ASSERT_EQ(idle(), 64 * kib);
  const listening heard{{"slabs: an idle one is not lent"}};
  const block fresh{memory, 1000, work};
  EXPECT_EQ(idle(), 64 * kib);
  EXPECT_EQ(heard["slabs: an idle one is not lent"], 1U);
}

TEST_F(rare_ways, slabs_that_were_put_off_are_settled_late_and_not_lost) {
  const listening heard{{"slabs: settled late"}};
  auto gone = std::make_unique<pool>(opened);
  { const block freed{*gone, 1000, work}; }
  (void)capture(work, [&](stream_ref) { gone.reset(); });
  EXPECT_EQ(heard["slabs: put off"], 1U) << "its stream was being captured";
  const block fresh{memory, 1000, other};
  EXPECT_EQ(heard["slabs: settled late"], 2U);
  EXPECT_EQ(idle(), 0U);
  device_ref{opened}.trim();
  EXPECT_EQ(state.held, 64 * kib) << "the fresh one alone";
}

TEST_F(rare_ways, slabs_that_are_settled_late_are_there_when_memory_is_short) {
  const listening heard{{"slabs: settled late"}};
  auto gone = std::make_unique<pool>(opened);
  { const block freed{*gone, 3072 * kib, work}; }
  (void)capture(work, [&](stream_ref) { gone.reset(); });
  const block fits{memory, 4096 * kib, work};
  EXPECT_EQ(heard["slabs: out of memory, then trimmed"], 1U);
}

TEST_F(rare_ways, the_ways_of_a_pool_are_landmarks) {
  const listening heard;
  (void)freed_by(work, 64 * kib);
  EXPECT_EQ(heard["pool: reused at once"], 0U);
  (void)freed_by(work, 64 * kib);
  EXPECT_EQ(heard["pool: reused at once"], 1U);
  (void)freed_by(other, 64 * kib);
  EXPECT_EQ(heard["pool: reused behind an event"], 1U);
  {
    const block low{memory, 32 * kib, other};
    const block high{memory, 32 * kib, work};
  }
  EXPECT_EQ(heard["pool: joined neighbours"], 0U);
  (void)freed_by(work, 64 * kib);
  EXPECT_EQ(heard["pool: joined neighbours"], 1U);
}

TEST_F(rare_ways, what_becomes_of_a_capture_is_a_landmark) {
  const listening heard;
  const buffer<int> x{memory, 4, work};
  EXPECT_THROW(capture(work, [](stream_ref) { throw usage_error{"no"}; }), usage_error);
  EXPECT_EQ(heard["capture: abandoned"], 1U);
  const pinned<int> in{opened, 4};
  const graph made = capture(work, [&](stream_ref c) { copy(c, read<int>{in}, write<int>{x}); });
  EXPECT_EQ(heard["pinned memory: kept by a graph"], 1U);
  executable step = made.instantiate(work);
  EXPECT_TRUE(step.update(made));
  EXPECT_EQ(heard["update: refused"], 0U);
  EXPECT_FALSE(step.update(capture(work, [](stream_ref) {})));
  EXPECT_EQ(heard["update: refused"], 1U);
  EXPECT_EQ(heard["capture: abandoned"], 1U);
}

}  // namespace
}  // namespace reprise::test
