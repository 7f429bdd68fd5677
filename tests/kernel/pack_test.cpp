// The block that arguments travel in: it can be copied as bytes, and gives them back in order.
#include "reprise/kernel/pack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "reprise/device/view.hpp"

namespace reprise::detail {
namespace {

struct odd {
  char letter;
  double number;
  char more[3];
};
struct alignas(16) wide {
  float lanes[4];
};

TEST(pack, is_trivially_copyable_whatever_is_in_it) {
  EXPECT_TRUE((std::is_trivially_copyable_v<pack<>>));
  EXPECT_TRUE((std::is_trivially_copyable_v<pack<int>>));
  EXPECT_TRUE((std::is_trivially_copyable_v<pack<bool, odd, read<float>, write<double>, wide>>));
  EXPECT_TRUE((std::is_trivially_copyable_v<packed_call<odd, char, wide>>));
  EXPECT_EQ(alignof(packed_call<char>), 16U);
}

TEST(pack, gives_its_arguments_back_in_order) {
  const auto packed = make_pack(std::int8_t{1}, 2.5, 'c', std::int64_t{-4}, true);
  const std::string text =
      apply(packed, [](std::int8_t a, double b, char c, std::int64_t d, bool e) {
        return std::to_string(a) + " " + std::to_string(b) + " " + c + " " + std::to_string(d) +
               (e ? " yes" : " no");
      });
  EXPECT_EQ(text, "1 2.500000 c -4 yes");
}

TEST(pack, of_nothing_calls_with_nothing) {
  EXPECT_EQ(apply(make_pack(), [] { return 5; }), 5);
}

struct fake_call {
  std::vector<std::string> seen;
};

void body(fake_call& call, odd first, float second, wide third) {
  call.seen.push_back(std::string{first.letter} + first.more[2] +
                      std::to_string(static_cast<int>(first.number)) + "," +
                      std::to_string(static_cast<int>(second)) + "," +
                      std::to_string(static_cast<int>(third.lanes[3])));
}

std::size_t ask(odd first, float second, wide) {
  return static_cast<std::size_t>(first.number) + static_cast<std::size_t>(second);
}

// What a capture does: the bytes, moved elsewhere.
TEST(packed_call, works_from_a_copy_of_its_bytes) {
  using packed = packed_call<odd, float, wide>;
  alignas(16) std::byte bytes[sizeof(packed)];
  {
    const packed original{reinterpret_cast<void (*)()>(&body),
                          make_pack(odd{'a', 7, {0, 0, 'z'}}, 8.0F, wide{{0, 0, 0, 9}})};
    std::memcpy(bytes, &original, sizeof original);
  }
  fake_call call;
  invoke_packed<fake_call, odd, float, wide>(&call, bytes);
  invoke_packed<fake_call, odd, float, wide>(&call, bytes);
  EXPECT_EQ(call.seen, (std::vector<std::string>{"az7,8,9", "az7,8,9"}));
  EXPECT_EQ((ask_packed<odd, float, wide>(reinterpret_cast<void (*)()>(&ask), bytes)), 15U);
}

}  // namespace
}  // namespace reprise::detail
