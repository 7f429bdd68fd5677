#include "reprise/replay/staging.hpp"

#include <map>

#include "reprise/device/forwarding.hpp"
#include "reprise/sim/device.hpp"
#include "tests/replay/support.hpp"

namespace reprise {
namespace {

class staging_test : public ::testing::TestWithParam<std::string> {
 protected:
  test::bench on{GetParam()};
  signature declared{"demo"};
  input<float> a = declared.in<float>("a", {any});
  input<std::int32_t> b = declared.in<std::int32_t>("b", {any});
  input<float> c = declared.in<float>("c", {any});
};

INSTANTIATE_TEST_SUITE_P(devices, staging_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(staging_test, host_inputs_leave_in_one_copy_and_arrive_at_their_offsets) {
  staging stage{on.opened};
  const std::vector<float> first{1, 2, 3};
  const std::vector<std::int32_t> second{7, 8};
  const std::vector<float> third{9};
  const std::vector<binding> given{a.from_host(first), b.from_host(second), c.from_host(third)};
  const input_layout layout{declared, std::span{given}};
  buffer<std::byte> block{on.memory, layout.bytes(), on.work};

  const std::uint64_t before = (*on.calls)[seam_call::copy];
  stage.stage(on.work, std::span{given}, layout, block.all().data(), {});
  EXPECT_EQ((*on.calls)[seam_call::copy] - before, 1U);

  const auto at = [&](std::size_t slot) { return block.all().data() + layout.offset(slot); };
  EXPECT_EQ(test::read_back<float>(on.work, {reinterpret_cast<float*>(at(0)), 3}), first);
  EXPECT_EQ(test::read_back<std::int32_t>(on.work, {reinterpret_cast<std::int32_t*>(at(1)), 2}),
            second);
  EXPECT_EQ(test::read_back<float>(on.work, {reinterpret_cast<float*>(at(2)), 1}), third);
}

TEST_P(staging_test, a_device_input_between_host_inputs_keeps_its_place) {
  staging stage{on.opened};
  const std::vector<float> first{1};
  const buffer<std::int32_t> second{on.memory, 2, on.work};
  test::upload<std::int32_t>(on.work, {5, 6}, second.all());
  const std::vector<float> third{9};
  const std::vector<binding> given{c.from_host(third), b(second.all()), a.from_host(first)};
  const input_layout layout{declared, std::span{given}};
  buffer<std::byte> block{on.memory, layout.bytes(), on.work};
  stage.stage(on.work, std::span{given}, layout, block.all().data(), {});
  const auto at = [&](std::size_t slot) { return block.all().data() + layout.offset(slot); };
  EXPECT_EQ(test::read_back<float>(on.work, {reinterpret_cast<float*>(at(0)), 1}), first);
  EXPECT_EQ(test::read_back<std::int32_t>(on.work, {reinterpret_cast<std::int32_t*>(at(1)), 2}),
            (std::vector<std::int32_t>{5, 6}));
  EXPECT_EQ(test::read_back<float>(on.work, {reinterpret_cast<float*>(at(2)), 1}), third);
}

// D15: a value staged from pageable memory is the one that was there at the call.
TEST_P(staging_test, the_caller_may_rewrite_its_memory_at_once_two_hundred_times) {
  staging stage{on.opened};
  std::vector<float> value{0};
  buffer<float> results{on.memory, 200, on.work};
  buffer<float> block{on.memory, 64, on.work};
  signature single{"single"};
  const auto x = single.in<float>("x", {1});
  for (int i = 0; i < 200; ++i) {
    value[0] = static_cast<float>(i);
    const binding given = x.from_host(value);
    const input_layout layout{single, {given}};
    stage.stage(on.work, {given}, layout, reinterpret_cast<std::byte*>(block.all().data()), {});
    copy(on.work, read<float>{block.all().subview(0, 1)},
         write<float>{results.all().subview(static_cast<std::size_t>(i), 1)});
    value[0] = -1;
  }
  const std::vector<float> got = test::read_back<float>(on.work, results.all());
  for (int i = 0; i < 200; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i));
}

// One input of a chosen length, staged again and again, with what the device was asked for.
class lap_test : public staging_test {
 protected:
  void stage_once(std::size_t count, float value = 1.0F) {
    host.assign(count, value);
    const binding given = c.from_host(host);
    // A layout is by slot; this one has all three, two of them empty.
    const std::vector<binding> all{a.from_host({}), b.from_host({}), given};
    const input_layout layout{declared, std::span{all}};
    if (block.size() < count) block = buffer<float>{on.memory, count, on.work};
    stage.stage(on.work, std::span{all}, layout, reinterpret_cast<std::byte*>(block.all().data()),
                {});
  }
  std::uint64_t calls(seam_call call) const { return (*on.calls)[call] - before.at(call); }
  void start_counting() {
    for (std::size_t i = 0; i < seam_calls; ++i) {
      const auto call = static_cast<seam_call>(i);
      before[call] = (*on.calls)[call];
    }
  }

  static constexpr std::size_t small = 64;  // elements: one slot of the least size
  staging stage{on.opened};
  std::vector<float> host;
  buffer<float> block{on.memory, small, on.work};
  std::map<seam_call, std::uint64_t> before;
};

INSTANTIATE_TEST_SUITE_P(devices, lap_test, ::testing::ValuesIn(test::devices_under_test()),
                         [](const auto& p) { return test::test_name(p.param); });

TEST_P(lap_test, slots_are_pinned_at_the_first_call_and_used_again) {
  stage_once(small);
  EXPECT_EQ(stage.pinned_bytes(), 2 * staging::most_slots * 256);
  start_counting();
  for (int i = 0; i < 200; ++i) stage_once(small);
  EXPECT_EQ(calls(seam_call::allocate), 0U);
  EXPECT_EQ(calls(seam_call::create_event), 0U);
  EXPECT_EQ(calls(seam_call::copy), 200U);
  on.work.synchronize();
}

TEST_P(lap_test, an_event_is_recorded_when_a_half_is_left_and_asked_when_one_is_entered_again) {
  stage_once(small);
  start_counting();
  for (std::size_t i = 1; i < staging::most_slots; ++i) stage_once(small);
  EXPECT_EQ(calls(seam_call::event_record), 0U) << "the half is full and not yet left";
  EXPECT_EQ(calls(seam_call::query), 0U);
  stage_once(small);
  EXPECT_EQ(calls(seam_call::event_record), 1U);
  EXPECT_EQ(calls(seam_call::query), 1U);
  on.work.synchronize();
  for (std::size_t i = 0; i < 10 * staging::most_slots; ++i) stage_once(small);
  EXPECT_EQ(calls(seam_call::event_record), 11U);
  EXPECT_EQ(calls(seam_call::query), 11U);
  on.work.synchronize();
}

TEST_P(lap_test, large_calls_have_fewer_slots) {
  constexpr std::size_t large = staging::small_half / sizeof(float);
  stage_once(large);
  EXPECT_EQ(stage.pinned_bytes(), 2 * staging::fewest_slots * staging::small_half);
  start_counting();
  stage_once(large);
  EXPECT_EQ(calls(seam_call::event_record), 0U);
  stage_once(large);
  EXPECT_EQ(calls(seam_call::event_record), 1U);
  on.work.synchronize();
}

TEST_P(lap_test, halves_grow_to_the_largest_call_and_then_stay) {
  stage_once(small);
  constexpr std::size_t large = 3 * staging::small_half / sizeof(float);
  for (int i = 0; i < 4; ++i) {
    stage_once(large, 5.0F + static_cast<float>(i));
    EXPECT_EQ(test::read_back<float>(on.work, block.all().subview(0, large)),
              std::vector<float>(large, 5.0F + static_cast<float>(i)));
    stage_once(small, -1.0F);
    EXPECT_EQ(test::read_back<float>(on.work, block.all().subview(0, small)),
              std::vector<float>(small, -1.0F));
  }
  EXPECT_EQ(stage.pinned_bytes(), 2 * staging::fewest_slots * 3 * staging::small_half);
  start_counting();
  for (int i = 0; i < 20; ++i) stage_once(i % 2 == 0 ? large : small);
  EXPECT_EQ(calls(seam_call::allocate), 0U);
  on.work.synchronize();
}

// A device whose events have never passed when they are asked, so that every one is waited for.
class slow_device final : public forwarding_device {
 public:
  using forwarding_device::forwarding_device;

  bool finished(event_id, place) override {
    ++asked;
    return false;
  }
  void synchronize(event_id event, place from) override {
    ++waited;
    forwarding_device::synchronize(event, from);
  }

  int asked = 0;
  int waited = 0;
};

TEST(staging_waits, a_slot_that_is_not_free_is_waited_for_and_the_wait_is_counted) {
  auto implementation = std::make_unique<slow_device>(sim::open_cpu(1));
  slow_device& slow = *implementation;
  const device opened{std::move(implementation)};
  stream work{opened};
  pool memory{opened, "test"};
  buffer<float> block{memory, 64, work};
  staging stage{opened};
  signature single{"single"};
  const auto x = single.in<float>("x", {any});
  const std::vector<float> value{1.0F};
  const auto stage_once = [&] {
    const binding given = x.from_host(value);
    stage.stage(work, {given}, input_layout{single, {given}},
                reinterpret_cast<std::byte*>(block.all().data()), {});
  };
  for (std::size_t i = 0; i < staging::most_slots; ++i) stage_once();
  EXPECT_EQ(slow.asked, 0) << "nothing is asked while the half lasts";
  EXPECT_EQ(stage.waits(), 0U);
  for (std::uint64_t half = 1; half <= 5; ++half) {
    for (std::size_t i = 0; i < staging::most_slots; ++i) stage_once();
    EXPECT_EQ(stage.waits(), half);
    EXPECT_EQ(slow.waited, static_cast<int>(half));
  }
}

}  // namespace
}  // namespace reprise
