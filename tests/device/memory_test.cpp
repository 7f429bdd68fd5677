// Pools and buffers by themselves: where blocks lie, what they count, who owns them.
#include "reprise/device/memory.hpp"

#include <algorithm>
#include <limits>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using pool_on = on_each_device;
using buffer_on = on_each_device;
using pinned_on = on_each_device;

std::uintptr_t address(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

TEST_P(pool_on, gives_blocks_that_are_aligned_and_lie_apart) {
  std::vector<block> blocks;
  for (std::size_t bytes = 0; bytes < 40 * 97; bytes += 97)
    blocks.emplace_back(memory(), bytes, s());
  std::ranges::sort(blocks, {}, &block::data);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(address(blocks[i].data()) % 256, 0U);
    if (i == 0) continue;
    EXPECT_GE(blocks[i].data(),
              blocks[i - 1].data() + std::max<std::size_t>(1, blocks[i - 1].bytes()));
  }
}

// Takes and frees in a fixed order; where each block lay, from the first one on.
std::vector<std::ptrdiff_t> layout_of(device_ref device, stream_ref stream) {
  pool fresh{device};
  std::vector<std::ptrdiff_t> layout;
  std::vector<block> held;
  const block first{fresh, 1000, stream};
  for (const std::size_t bytes : {300U, 5000U, 1U, 256U, 257U, 4096U}) {
    held.emplace_back(fresh, bytes, stream);
    layout.push_back(held.back().data() - first.data());
    if (held.size() == 3) held.erase(held.begin() + 1);
  }
  return layout;
}

TEST_P(pool_on, gives_the_same_layout_for_the_same_order_of_calls) {
  const auto once = layout_of(dev(), s());
  EXPECT_EQ(layout_of(dev(), s()), once);
  EXPECT_NE(std::ranges::count_if(once, [](std::ptrdiff_t at) { return at != 0; }), 0);
}

TEST_P(pool_on, keeps_bytes_and_address_of_a_block_while_others_come_and_go) {
  const auto kept = filled<std::uint32_t>(100, 0xabcd1234U);
  const std::uint32_t* const at = kept.all().data();
  for (std::size_t count = 1; count < 20; ++count) {
    const auto passing = filled<std::uint32_t>(count * 50, 7U);
  }
  EXPECT_EQ(kept.all().data(), at);
  EXPECT_EQ(read_back(s(), kept), std::vector<std::uint32_t>(100, 0xabcd1234U));
}

TEST_P(pool_on, counts_slabs_and_live_blocks_exactly) {
  EXPECT_EQ(memory().bytes(), 0U);
  EXPECT_EQ(memory().used(), 0U);
  {
    const block one{memory(), 1, s()};
    EXPECT_EQ(memory().used(), 256U);
    EXPECT_EQ(memory().bytes(), 64 * kib);
    const block more{memory(), 257, s()};
    EXPECT_EQ(memory().used(), 256U + 512U);
    const block large{memory(), 3000 * kib, s()};  // in pages of 2 MiB
    EXPECT_EQ(memory().used(), 256U + 512U + 3000 * kib);
    EXPECT_EQ(memory().bytes(), 64 * kib + 4096 * kib);
  }
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(memory().bytes(), 64 * kib + 4096 * kib);
  EXPECT_EQ(leased(), memory().bytes());
}

TEST_P(pool_on, knows_its_device_and_its_label) {
  const pool named{dev(), "weights"};
  EXPECT_EQ(named.label(), "weights");
  EXPECT_TRUE(named.device() == dev());
}

TEST_P(pool_on, may_go_before_its_buffers) {
  std::optional<pool> early{dev()};
  std::optional<buffer<int>> late{std::in_place, *early, 64U, s()};
  early.reset();
  fill(s(), write<int>{*late}, 5);
  EXPECT_EQ(read_back(s(), *late), std::vector<int>(64, 5));
  EXPECT_EQ(leased(), 64 * kib);
  late.reset();
  EXPECT_EQ(leased(), 0U);
}

TEST_P(pool_on, refuses_a_stream_of_another_device_and_names_both) {
  const device other = open_for_test("cpu");
  const stream foreign{other};
  const std::string message = message_of<usage_error>([&] {
    const block refused{memory(), 16, foreign};
  });
  EXPECT_TRUE(has(message, "pool 'test' is of " + GetParam() + ", the stream of cpu")) << message;
  EXPECT_EQ(memory().bytes(), 0U);
}

TEST_P(pool_on, refuses_sizes_that_no_address_space_has) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {most, most - 254, most - 255, most - 300000, most / 2 + 1}) {
    const std::string message = message_of<out_of_memory>([&] {
      const block refused{memory(), bytes, s()};
    });
    expect_names(message, "allocate", GetParam(), "memory_test.cpp");
    EXPECT_TRUE(has(message, std::to_string(bytes) + " bytes asked")) << message;
  }
  // Their bytes would wrap around to a few.
  EXPECT_THROW((buffer<double>{memory(), most / 8 + 2, s()}), out_of_memory);
  EXPECT_THROW((buffer<double>{memory(), most / 4, s()}), out_of_memory);
  EXPECT_THROW((pinned<double>{dev(), most / 8 + 2}), out_of_memory);
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(memory().bytes(), 0U);
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  expect_usable(s());
}

TEST_P(buffer_on, that_was_moved_from_is_empty) {
  auto from = filled<int>(32, 9);
  const int* const at = from.all().data();
  const buffer<int> to{std::move(from)};
  EXPECT_EQ(from.size(), 0U);  // NOLINT(bugprone-use-after-move): that is the question
  EXPECT_EQ(from.all().data(), nullptr);
  EXPECT_EQ(to.all().data(), at);
  EXPECT_EQ(to.size(), 32U);
  EXPECT_EQ(read_back(s(), to), std::vector<int>(32, 9));
  EXPECT_EQ(memory().used(), 256U);
}

TEST_P(buffer_on, that_is_assigned_frees_what_it_had) {
  auto a = filled<int>(32, 1);
  auto b = filled<int>(1000, 2);
  EXPECT_EQ(memory().used(), 256U + 4096U);
  a = std::move(b);
  EXPECT_EQ(memory().used(), 4096U);
  EXPECT_EQ(b.size(), 0U);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(read_back(s(), a), std::vector<int>(1000, 2));
  a = {};
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(a.size(), 0U);
}

TEST_P(buffer_on, that_is_assigned_to_itself_stays) {
  auto a = filled<int>(8, 3);
  auto& same = a;
  a = std::move(same);
  EXPECT_EQ(read_back(s(), a), std::vector<int>(8, 3));
  EXPECT_EQ(memory().used(), 256U);
}

TEST_P(buffer_on, of_nothing_is_there_and_copies_nothing) {
  const buffer<int> none{memory(), 0, s()};
  EXPECT_EQ(none.size(), 0U);
  EXPECT_NE(none.all().data(), nullptr);
  const calls_since now{*counts};
  copy(s(), read<int>{none}, write<int>{none});
  fill(s(), write<int>{none}, 1);
  EXPECT_EQ(now[seam_call::copy] + now[seam_call::fill], 0U);
}

TEST_P(pinned_on, is_counted_while_it_is_held) {
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  const calls_since now{*counts};
  {
    pinned<std::uint16_t> first{dev(), 50};
    const pinned<std::uint8_t> second{dev(), 7};
    EXPECT_EQ(dev().pinned_bytes(), 107U);
    pinned<std::uint16_t> moved{std::move(first)};
    EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move)
    EXPECT_EQ(first.data(), nullptr);
    EXPECT_EQ(moved.size(), 50U);
    EXPECT_EQ(dev().pinned_bytes(), 107U);
    moved = {};
    EXPECT_EQ(dev().pinned_bytes(), 7U);
  }
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  EXPECT_EQ(now[seam_call::allocate], 2U);
  EXPECT_EQ(now[seam_call::release], 2U);
}

TEST_P(pinned_on, is_aligned_and_is_the_hosts_to_write) {
  const pinned<float> host{dev(), 100};
  EXPECT_EQ(address(reinterpret_cast<const std::byte*>(host.data())) % 256, 0U);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  EXPECT_EQ(host.all()[99], 99.0F);
  EXPECT_EQ(host.all().bytes(), 400U);
}

INSTANTIATE_TEST_SUITE_P(devices, pool_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, buffer_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, pinned_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
