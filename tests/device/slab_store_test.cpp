// Slabs between pools and the device: kept until they are trimmed, and what happens when memory is
// short, inside a capture and outside.
#include "reprise/device/slab_store.hpp"

#include "reprise/device/forwarding.hpp"
#include "tests/device/short_device.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using slab_store_on = on_each_device;

TEST_P(slab_store_on, lends_an_idle_slab_again_without_a_call_of_the_device) {
  { const block gone{*std::make_unique<pool>(dev()), 1000, s()}; }
  const calls_since now{*counts};
  const block next{memory(), 1000, s()};
  EXPECT_EQ(now[seam_call::allocate], 0U);
  EXPECT_EQ(memory().bytes(), 64 * kib);
  EXPECT_EQ(idle(), 0U);
}

TEST_P(slab_store_on, does_not_waste_more_than_half_of_an_idle_slab) {
  { const block gone{*std::make_unique<pool>(dev()), 256 * kib, s()}; }
  const calls_since now{*counts};
  const block little{memory(), 64 * kib, s()};
  EXPECT_EQ(now[seam_call::allocate], 1U);
  EXPECT_EQ(idle(), 256 * kib);
  pool half{dev()};
  const block fits{half, 128 * kib, s()};
  EXPECT_EQ(now[seam_call::allocate], 1U);
  EXPECT_EQ(half.bytes(), 256 * kib) << "a pool counts the slab that it holds, not what it asked";
}

TEST_P(slab_store_on, waits_for_the_streams_that_freed_into_a_pool_before_it_takes_the_slabs) {
  const stream other{dev()};
  const calls_since now{*counts};
  {
    pool gone{dev()};
    { const block a{gone, 100, s()}, b{gone, 100, other}; }
    EXPECT_EQ(now[seam_call::synchronize], 0U);
  }
  EXPECT_EQ(now[seam_call::synchronize], 2U);
}

INSTANTIATE_TEST_SUITE_P(devices, slab_store_on, each_device(), device_of);

class short_of_memory_on : public testing::TestWithParam<std::string> {
 protected:
  // An idle slab that fits nothing of what the tests ask for.
  void leave_idle(std::size_t bytes) {
    const block gone{*std::make_unique<pool>(opened), bytes, work};
  }

  short_memory state{.limit = 1024 * kib};
  device opened{std::make_unique<short_device>(open_bare(GetParam()), state)};
  stream work{opened};
  pool memory{opened, "test"};
};

TEST_P(short_of_memory_on, a_pool_gets_what_idle_slabs_hold) {
  leave_idle(960 * kib);
  const block taken{memory, 128 * kib, work};
  EXPECT_EQ(state.refused, 1);
  EXPECT_EQ(state.held, 128 * kib);
}

TEST_P(short_of_memory_on, the_error_says_what_was_asked_and_the_pool_is_as_before) {
  const block kept{memory, 512 * kib, work};
  try {
    const block refused{memory, 576 * kib, work};
    FAIL() << "there was memory";
  } catch (const out_of_memory& failure) {
    EXPECT_EQ(failure.asked(), 576 * kib);
    EXPECT_EQ(failure.free(), 512 * kib);
    expect_names(failure.what(), "allocate", GetParam(), "slab_store_test.cpp");
  }
  EXPECT_EQ(state.refused, 1) << "with nothing idle there is nothing to try again with";
  EXPECT_EQ(memory.bytes(), 512 * kib);
  EXPECT_EQ(memory.used(), 512 * kib);
  const block fits{memory, 512 * kib, work};
}

TEST_P(short_of_memory_on, the_second_refusal_is_the_callers) {
  leave_idle(64 * kib);
  EXPECT_THROW((block{memory, 2048 * kib, work}), out_of_memory);
  EXPECT_EQ(state.refused, 2);
}

INSTANTIATE_TEST_SUITE_P(devices, short_of_memory_on, each_device(), device_of);

// Slabs that lie side by side, which a device may hand out at any time.
class side_by_side final : public forwarding_device {
 public:
  explicit side_by_side(std::unique_ptr<device_api> inner) : forwarding_device{std::move(inner)} {
    arena_ = forwarding_device::allocate(memory_kind::device, 1024 * kib, place::current());
  }
  ~side_by_side() override { inner().release(memory_kind::device, arena_); }
  std::byte* allocate(memory_kind, std::size_t bytes, place) override {
    return arena_ + std::exchange(next_, next_ + bytes);
  }
  void release(memory_kind, std::byte*) noexcept override {}

 private:
  std::byte* arena_ = nullptr;
  std::size_t next_ = 0;
};

TEST(slabs, that_lie_side_by_side_are_never_one_block) {
  const device opened{std::make_unique<side_by_side>(open_bare("cpu"))};
  const stream work{opened};
  pool memory{opened};
  {
    const block a{memory, 64 * kib, work};
    const block b{memory, 64 * kib, work};
    ASSERT_EQ(b.data(), a.data() + 64 * kib);
  }
  const block across{memory, 128 * kib, work};
  EXPECT_EQ(memory.bytes(), 256 * kib) << "it lies in a slab of its own";
}

}  // namespace
}  // namespace reprise::test
