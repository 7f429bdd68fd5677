// Views as a checked body sees them: each way to reach an element notes exactly what it touches.
// Compiled with REPRISE_CHECKED.
#include "reprise/device/view.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/device/touch_log.hpp"

namespace reprise {
namespace {

// Eight ints 0 … 7 and a log; ranges are told as "r[first, end)" and "w[first, end)", in elements.
class checked_view : public testing::Test {
 protected:
  checked_view() {
    std::iota(numbers.begin(), numbers.end(), 0);
    touches_of_this_thread = &log;
  }
  ~checked_view() override { touches_of_this_thread = nullptr; }

  std::string touched_in_elements(std::size_t size = sizeof(int)) {
    std::string text;
    for (const touched_range& range : log.taken()) {
      const auto first = static_cast<std::size_t>(
          range.begin - reinterpret_cast<const std::byte*>(numbers.data()));
      text += (range.writes ? "w[" : "r[") + std::to_string(first / size) + ", " +
              std::to_string((first + range.bytes) / size) + ")";
    }
    return text;
  }

  std::array<int, 8> numbers{};
  touch_log log;
  view<int> all{numbers.data(), numbers.size()};
  view<const int> constant{all};
};

struct touch_case {
  std::string name;
  std::function<void(view<int>, view<const int>)> what;
  std::string touched;
  std::array<int, 8> after{0, 1, 2, 3, 4, 5, 6, 7};
};

int sink = 0;

const std::vector<touch_case>& cases() {
  using v = view<int>;
  using c = view<const int>;
  static const std::vector<touch_case> table{
      {"to name an element touches nothing", [](v x, c) { [[maybe_unused]] auto&& r = x[3]; }, ""},
      {"to point touches nothing", [](v x, c) { [[maybe_unused]] auto p = x.data() + 3; }, ""},
      {"sizes touch nothing", [](v x, c y) { sink = static_cast<int>(x.bytes() + y.size()); }, ""},
      {"value", [](v x, c) { sink = x[3]; }, "r[3, 4)"},
      {"constant value", [](v, c x) { sink = x[3]; }, "r[3, 4)"},
      {"value through a pointer", [](v x, c) { sink = *(x.data() + 2); }, "r[2, 3)"},
      {"pointer's element", [](v, c x) { sink = x.data()[5]; }, "r[5, 6)"},
      {"part", [](v x, c) { sink = x.subview(4, 2)[1]; }, "r[5, 6)"},
      {"=", [](v x, c) { x[3] = 9; }, "w[3, 4)", {0, 1, 2, 9, 4, 5, 6, 7}},
      {"= of another", [](v x, c) { x[3] = x[1]; }, "r[1, 2)w[3, 4)", {0, 1, 2, 1, 4, 5, 6, 7}},
      {"= of a constant",
       [](v x, c y) { x[3] = y[1]; },
       "r[1, 2)w[3, 4)",
       {0, 1, 2, 1, 4, 5, 6, 7}},
      {"+=", [](v x, c) { x[3] += 2; }, "r[3, 4)w[3, 4)", {0, 1, 2, 5, 4, 5, 6, 7}},
      {"-=", [](v x, c) { x[3] -= 2; }, "r[3, 4)w[3, 4)", {0, 1, 2, 1, 4, 5, 6, 7}},
      {"*=", [](v x, c) { x[3] *= 2; }, "r[3, 4)w[3, 4)", {0, 1, 2, 6, 4, 5, 6, 7}},
      {"*= promotes", [](v x, c) { x[3] *= 1.5; }, "r[3, 4)w[3, 4)", {0, 1, 2, 4, 4, 5, 6, 7}},
      {"/=", [](v x, c) { x[4] /= 2; }, "r[4, 5)w[4, 5)", {0, 1, 2, 3, 2, 5, 6, 7}},
      {"%=", [](v x, c) { x[5] %= 3; }, "r[5, 6)w[5, 6)", {0, 1, 2, 3, 4, 2, 6, 7}},
      {"|=", [](v x, c) { x[4] |= 1; }, "r[4, 5)w[4, 5)", {0, 1, 2, 3, 5, 5, 6, 7}},
      {"&=", [](v x, c) { x[5] &= 4; }, "r[5, 6)w[5, 6)", {0, 1, 2, 3, 4, 4, 6, 7}},
      {"^=", [](v x, c) { x[5] ^= 1; }, "r[5, 6)w[5, 6)", {0, 1, 2, 3, 4, 4, 6, 7}},
      {"<<=", [](v x, c) { x[2] <<= 2; }, "r[2, 3)w[2, 3)", {0, 1, 8, 3, 4, 5, 6, 7}},
      {">>=", [](v x, c) { x[6] >>= 1; }, "r[6, 7)w[6, 7)", {0, 1, 2, 3, 4, 5, 3, 7}},
      {"++x", [](v x, c) { sink = ++x[0]; }, "r[0, 1)w[0, 1)", {1, 1, 2, 3, 4, 5, 6, 7}},
      {"x++", [](v x, c) { sink = x[0]++; }, "r[0, 1)w[0, 1)", {1, 1, 2, 3, 4, 5, 6, 7}},
      {"--x", [](v x, c) { --x[1]; }, "r[1, 2)w[1, 2)", {0, 0, 2, 3, 4, 5, 6, 7}},
      {"x--", [](v x, c) { x[1]--; }, "r[1, 2)w[1, 2)", {0, 0, 2, 3, 4, 5, 6, 7}},
      {"written, then read",
       [](v x, c) {
         x[2] = 5;
         sink = x[2];
       },
       "w[2, 3)",
       {0, 1, 5, 3, 4, 5, 6, 7}},
      {"swap",
       [](v x, c) { swap(x[0], x[7]); },
       "r[0, 1)r[7, 8)w[0, 1)w[7, 8)",
       {7, 1, 2, 3, 4, 5, 6, 0}},
      {"fill_n",
       [](v x, c) { std::fill_n(x.data() + 2, 3, 9); },
       "w[2, 5)",
       {0, 1, 9, 9, 9, 5, 6, 7}},
      {"copy_n",
       [](v x, c y) { std::copy_n(y.data(), 2, x.data() + 6); },
       "r[0, 2)w[6, 8)",
       {0, 1, 2, 3, 4, 5, 0, 1}},
      {"max_element", [](v, c x) { sink = *std::max_element(x.data(), x.data() + 4); }, "r[0, 4)"},
      {"accumulate", [](v, c x) { sink = std::accumulate(x.data() + 1, x.data() + 8, 0); },
       "r[1, 8)"},
      {"lower_bound", [](v, c x) { std::lower_bound(x.data(), x.data() + 8, 8); },
       "r[4, 5)r[6, 8)"},
      {"sort",
       [](v x, c) { std::sort(x.data(), x.data() + 4, std::greater<int>{}); },
       "r[0, 4)w[0, 4)",
       {3, 2, 1, 0, 4, 5, 6, 7}},
      {"read_elements",
       [](v, c x) {
         int there[3];
         read_elements(x.data() + 1, 3, there);
         sink = there[2];
       },
       "r[1, 4)"},
      {"write_elements",
       [](v x, c) {
         const int there[] = {8, 9};
         write_elements(there, 2, x.data() + 1);
       },
       "w[1, 3)",
       {0, 8, 9, 3, 4, 5, 6, 7}},
      {"copy_elements",
       [](v x, c y) { copy_elements(y.data() + 1, 2, x.data() + 5); },
       "r[1, 3)w[5, 7)",
       {0, 1, 2, 3, 4, 1, 2, 7}},
      {"no elements at all",
       [](v x, c y) {
         read_elements(y.data(), 0, nullptr);
         write_elements(nullptr, 0, x.data());
         copy_elements(y.data(), 0, x.data());
         copy_elements(view<const int>{}.data(), 0, view<int>{}.data());
         std::fill_n(view<int>{}.data(), 0, 1);
       },
       ""},
      {"reinterpreted",
       [](v x, c) { reinterpret_elements<std::byte>(x.data())[4] = std::byte{3}; },
       "w[4, 5)",
       {0, 3, 2, 3, 4, 5, 6, 7}},
      {"loaded atomically", [](v, c x) { sink = load_atomically(x.data() + 2); }, "r[2, 3)"},
      {"stored atomically",
       [](v x, c) { store_atomically(x.data() + 2, 5, std::memory_order_release); },
       "w[2, 3)",
       {0, 1, 5, 3, 4, 5, 6, 7}},
      {"added atomically",
       [](v x, c) { sink = add_atomically(x.data() + 2, 5); },
       "r[2, 3)w[2, 3)",
       {0, 1, 7, 3, 4, 5, 6, 7}},
  };
  return table;
}

TEST_F(checked_view, notes_exactly_what_each_operator_touches) {
  for (const touch_case& each : cases()) {
    log.clear();
    std::iota(numbers.begin(), numbers.end(), 0);
    each.what(all, constant);
    const std::size_t unit = each.name == "reinterpreted" ? 1 : sizeof(int);
    EXPECT_EQ(touched_in_elements(unit), each.touched) << each.name;
    EXPECT_EQ(numbers, each.after) << each.name;
  }
}

TEST_F(checked_view, notes_nothing_without_a_log) {
  touches_of_this_thread = nullptr;
  for (const touch_case& each : cases()) each.what(all, constant);
  EXPECT_EQ(touched_in_elements(), "");
}

TEST_F(checked_view, of_bf16_widens_and_narrows) {
  std::array<bf16, 2> halves{narrow<bf16>(1.5F), narrow<bf16>(2.0F)};
  const view<bf16> x{halves.data(), halves.size()};
  x[0] = narrow<bf16>(widen(x[1]) + widen(view<const bf16>{x}[1]));
  EXPECT_EQ(widen(halves[0]), 4.0F);
  ASSERT_EQ(log.taken().size(), 2U);
  EXPECT_EQ(log.taken()[0].begin, reinterpret_cast<std::byte*>(&halves[1]));
  EXPECT_EQ(log.taken()[1], (touched_range{reinterpret_cast<std::byte*>(&halves[0]), 2, true}));
}

TEST_F(checked_view, gives_an_address_without_a_touch) {
  EXPECT_EQ(address_of(all.data() + 3), numbers.data() + 3);
  EXPECT_EQ(access_of(inout<int>{all}).begin, numbers.data());
  EXPECT_EQ(as_tensor(view<std::int32_t>{all}).data, reinterpret_cast<std::byte*>(numbers.data()));
  EXPECT_EQ(touched_in_elements(), "");
}

TEST_F(checked_view, notes_the_workspace_of_a_call) {
  const cpu_call call{std::as_writable_bytes(std::span{numbers}), {}};
  EXPECT_EQ(call.workspace().size(), 32U);
  EXPECT_EQ(call.workspace<int>().size(), 8U);
  call.workspace<int>()[2] = 7;
  EXPECT_EQ(touched_in_elements(), "w[2, 3)");
  EXPECT_EQ(cpu_call({}, {}).workspace<int>().size(), 0U);
}

TEST_F(checked_view, notes_what_a_raw_loop_over_a_pair_of_pointers_reaches) {
  auto to = all.data();
  for (auto from = constant.data() + 4; from != constant.data() + 8; ++from) *to++ = *from;
  EXPECT_EQ(touched_in_elements(), "r[4, 8)w[0, 4)");
}

TEST(checked_ptr, is_a_random_access_iterator) {
  EXPECT_TRUE((std::random_access_iterator<pointer_to<float>>));
  EXPECT_TRUE((std::random_access_iterator<pointer_to<const float>>));
  EXPECT_TRUE((std::indirectly_writable<pointer_to<float>, float>));
  EXPECT_FALSE((std::indirectly_writable<pointer_to<const float>, float>));
}

TEST(checked_ptr, becomes_one_to_constants_and_no_raw_pointer) {
  EXPECT_TRUE((std::convertible_to<pointer_to<float>, pointer_to<const float>>));
  EXPECT_FALSE((std::convertible_to<pointer_to<const float>, pointer_to<float>>));
  EXPECT_FALSE((std::convertible_to<pointer_to<float>, float*>));
  EXPECT_FALSE((std::convertible_to<pointer_to<float>, const void*>));
  EXPECT_FALSE((std::convertible_to<float*, pointer_to<float>>));
}

TEST(checked_ptr, compares_and_subtracts_as_a_pointer_does) {
  std::array<int, 4> numbers{};
  const pointer_to<int> begin{numbers.data()};
  const pointer_to<const int> end = begin + 4;
  EXPECT_TRUE(begin < end && begin != end && end - 4 == begin && 2 + begin <= end);
  EXPECT_EQ(end - begin, 4);
  EXPECT_TRUE(pointer_to<int>{} == nullptr);
  EXPECT_FALSE(pointer_to<int>{});
  EXPECT_TRUE(begin);
}

TEST(checked_view_layout, is_that_of_a_pointer_and_a_size) {
  EXPECT_EQ(sizeof(view<float>), 16U);
  EXPECT_EQ(sizeof(inout<bf16>), 16U);
  EXPECT_TRUE(std::is_trivially_copyable_v<view<float>>);
}

}  // namespace
}  // namespace reprise
