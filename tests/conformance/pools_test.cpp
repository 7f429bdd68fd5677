// Rule 17: a pool is an arena over slabs. Where its blocks lie; the file of reuse has the rest.
#include <algorithm>

#include "tests/conformance/all_came.hpp"
#include "tests/conformance/conformance.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;

std::uintptr_t address(const std::byte* at) {
  return reinterpret_cast<std::uintptr_t>(at);
}

TEST_P(rule_17, blocks_are_aligned_and_lie_apart) {
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

TEST_P(rule_17, slabs_and_pinned_blocks_are_aligned_to_256_bytes) {
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{300}}) {
      std::byte* const a = api().allocate(kind, bytes, place::current());
      std::byte* const b = api().allocate(kind, bytes, place::current());
      EXPECT_EQ(address(a) % 256, 0U);
      EXPECT_EQ(address(b) % 256, 0U);
      EXPECT_NE(a, b);
      api().release(kind, a);
      api().release(kind, b);
    }
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

TEST_P(rule_17, the_same_order_of_calls_gives_the_same_layout) {
  const auto once = layout_of(dev(), s());
  EXPECT_EQ(layout_of(dev(), s()), once);
  EXPECT_NE(std::ranges::count_if(once, [](std::ptrdiff_t at) { return at != 0; }), 0);
}

TEST_P(rule_17, a_block_keeps_its_bytes_and_address_while_others_come_and_go) {
  const auto kept = filled<std::uint32_t>(100, 0xabcd1234U);
  const std::uint32_t* const at = kept.all().data();
  for (std::size_t count = 1; count < 20; ++count) {
    const auto passing = filled<std::uint32_t>(count * 50, 7U);
  }
  EXPECT_EQ(kept.all().data(), at);
  EXPECT_EQ(read_back(s(), kept), std::vector<std::uint32_t>(100, 0xabcd1234U));
}

TEST_P(rule_17, two_threads_share_a_pool_and_never_a_block) {
  all_came both{dev(), 2};
  std::array<int, 2> wrong{};
  const auto work = [&](int me) {
    const stream own{dev()};
    both.arrive_and_wait();
    for (int i = 0; i < 200; ++i) {
      const buffer<int> a{memory(), static_cast<std::size_t>(64 * (1 + i % 7)), own};
      fill(own, write<int>{a}, me);
      if (read_back(own, a) != std::vector<int>(a.size(), me))
        ++wrong[static_cast<std::size_t>(me)];
    }
  };
  host_thread first{dev(), [&] { work(0); }};
  host_thread second{dev(), [&] { work(1); }};
  first.join();
  second.join();
  EXPECT_EQ(wrong, (std::array<int, 2>{}));
  EXPECT_EQ(memory().used(), 0U);
}

TEST_P(rule_17, memory_may_be_allocated_and_given_back_inside_a_capture) {
  const auto x = filled<int>(10, 2);
  std::byte* kept = nullptr;
  std::optional<pinned<int>> host;
  const reports quiet;
  const graph made = capture(s(), [&](stream_ref c) {
    kept = api().allocate(memory_kind::device, 4096 * kib, place::current());
    host.emplace(dev(), 10U);
    std::byte* const brief = api().allocate(memory_kind::device, 1024 * kib, place::current());
    api().release(memory_kind::device, brief);
    const pinned<int> dying{dev(), 10};
    copy(c, read<int>{x}, write<int>{*host});
  });
  EXPECT_EQ(made.size(), 1U);
  made.instantiate(s()).launch(s());
  s().synchronize();
  EXPECT_EQ((*host)[9], 2);
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
  api().release(memory_kind::device, kept);
}

}  // namespace
}  // namespace reprise::test
