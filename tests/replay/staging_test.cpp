#include "reprise/replay/staging.hpp"

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
  const input_layout layout{std::span{given}};
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
  const input_layout layout{std::span{given}};
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
    const input_layout layout{{given}};
    stage.stage(on.work, {given}, layout, reinterpret_cast<std::byte*>(block.all().data()), {});
    copy(on.work, read<float>{block.all().subview(0, 1)},
         write<float>{results.all().subview(static_cast<std::size_t>(i), 1)});
    value[0] = -1;
  }
  const std::vector<float> got = test::read_back<float>(on.work, results.all());
  for (int i = 0; i < 200; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], static_cast<float>(i));
}

TEST_P(staging_test, slots_are_pinned_once_and_used_again) {
  staging stage{on.opened};
  const std::vector<float> value(16, 1.0F);
  signature single{"single"};
  const auto x = single.in<float>("x", {any});
  buffer<float> block{on.memory, 64, on.work};
  std::uint64_t allocations = 0;
  for (int i = 0; i < 20; ++i) {
    const binding given = x.from_host(value);
    stage.stage(on.work, {given}, input_layout{{given}},
                reinterpret_cast<std::byte*>(block.all().data()), {});
    if (i == 7) allocations = (*on.calls)[seam_call::allocate];
  }
  EXPECT_EQ((*on.calls)[seam_call::allocate], allocations);
  EXPECT_EQ(stage.pinned_bytes(), 4U * 256U);
  on.work.synchronize();
}

}  // namespace
}  // namespace reprise
