// Copies between device, pinned and pageable memory, and fills.
#include <numeric>

#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_copy = on_a_gpu;
using cuda_fill = on_a_gpu;

// Longer than the staging ring several times over, and no whole number of its slots.
constexpr std::size_t long_count = (std::size_t{3} << 20) + 77;

std::vector<float> counting_up(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

view<float> all(std::vector<float>& values) {
  return {values.data(), values.size()};
}

TEST_F(cuda_copy, goes_through_pinned_memory_both_ways) {
  pinned<float> in{gpu(), 1000};
  std::iota(in.data(), in.data() + 1000, 1.0f);
  buffer<float> x{memory(), 1000, s()};
  copy(s(), read<float>{in.all()}, write<float>{x});
  EXPECT_EQ(read_back(s(), x.all()), counting_up(1000));
}

TEST_F(cuda_copy, of_pageable_memory_is_whole_at_every_length) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{1000}, std::size_t{131072}, std::size_t{131073}, long_count}) {
    std::vector<float> in = counting_up(count);
    std::vector<float> out(count, 0.0f);
    buffer<float> x{memory(), count, s()};
    copy(s(), read<float>{all(in)}, write<float>{x});
    copy(s(), read<float>{x}, write<float>{all(out)});
    EXPECT_EQ(out, in) << count;  // a download is there when the call returns
  }
}

TEST_F(cuda_copy, from_pageable_memory_may_be_overwritten_when_the_call_returns) {
  std::vector<float> in = counting_up(long_count / 16);
  const std::vector<float> expected = in;
  buffer<float> x{memory(), in.size(), s()};
  copy(s(), read<float>{all(in)}, write<float>{x});
  std::fill(in.begin(), in.end(), -1.0f);
  EXPECT_EQ(read_back(s(), x.all()), expected);
}

TEST_F(cuda_copy, from_pageable_memory_is_seen_by_the_next_replay) {
  buffer<float> x{memory(), 1, s()};
  buffer<float> y{memory(), 1, s()};
  const executable step = capture(s(), [&](stream_ref c) {
                            copy(c, read<float>{x}, write<float>{y});
                          }).instantiate(s());
  for (int i = 0; i != 200; ++i) {
    std::vector<float> input{static_cast<float>(i)};
    copy(s(), read<float>{all(input)}, write<float>{x});
    step.launch(s());
    input[0] = -1.0f;
    EXPECT_EQ(read_back(s(), y.all()).front(), static_cast<float>(i));
  }
}

// Staged uploads append to a slot: only a ring's worth of unread bytes makes the host wait.
TEST_F(cuda_copy, of_many_small_pageable_inputs_does_not_wait_for_a_stream_that_is_held) {
  buffer<float> x{memory(), 200, s()};
  {
    std::vector<float> warm_up(1, 0.0f);
    copy(s(), read<float>{all(warm_up)}, write<float>{x});
    s().synchronize();
  }
  held_stream held{gpu(), s()};
  const auto begin = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i != 200; ++i) {
    std::vector<float> value{static_cast<float>(i + 1)};
    copy(s(), read<float>{all(value)}, write<float>{x.all().subview(i, 1)});
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds{5});
  held.release();
  EXPECT_EQ(read_back(s(), x.all()), counting_up(200));
}

TEST_F(cuda_copy, between_two_pageable_places_keeps_its_turn) {
  std::vector<float> a(1, 0.0f);
  std::vector<float> b(1, 0.0f);
  const buffer<float> x = floats(1, 3.0f);
  copy(s(), read<float>{x}, write<float>{all(a)});
  copy(s(), read<float>{all(a)}, write<float>{all(b)});
  EXPECT_EQ(b[0], 3.0f);
}

TEST_F(cuda_copy, between_pinned_and_pageable_memory_is_whole) {
  pinned<float> p{gpu(), long_count};
  std::vector<float> in = counting_up(long_count);
  std::vector<float> out(long_count, 0.0f);
  copy(s(), read<float>{all(in)}, write<float>{p.all()});
  copy(s(), read<float>{p.all()}, write<float>{all(out)});
  EXPECT_EQ(out, in);
}

TEST_F(cuda_copy, takes_pinned_memory_that_others_allocated_in_a_capture_too) {
  float* const foreign = allocate_foreign_pinned(10);
  ASSERT_NE(foreign, nullptr);
  std::fill(foreign, foreign + 10, 4.0f);
  buffer<float> x{memory(), 10, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    copy(c, read<float>{view<float>{foreign, 10}}, write<float>{x});
  });
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 4.0f));
  free_foreign_pinned(foreign);
}

TEST_F(cuda_copy, from_a_null_pointer_is_refused) {
  work what;
  what.kind = work_kind::copy;
  what.label = "copy";
  std::byte there{};
  what.copy = {&there, nullptr, 1};
  EXPECT_NE(message_of<device_error>([&] { enqueue(s(), what); }).find("null"), std::string::npos);
}

template <class T>
void expect_filled(device_ref gpu, stream_ref s, pool& memory, T value) {
  buffer<T> x{memory, 1001, s};
  fill(s, write<T>{x.all()}, T{});
  fill(s, write<T>{x.all().subview(1, 999)}, value);
  pinned<T> out{gpu, 1001};
  copy(s, read<T>{x}, write<T>{out.all()});
  s.synchronize();
  EXPECT_EQ(out[0], T{});
  EXPECT_EQ(out[1], value);
  EXPECT_EQ(out[999], value);
  EXPECT_EQ(out[1000], T{});
}

TEST_F(cuda_fill, repeats_patterns_of_one_two_and_four_bytes) {
  expect_filled<std::uint8_t>(gpu(), s(), memory(), 0xabu);
  expect_filled<std::uint16_t>(gpu(), s(), memory(), 0xabcdu);
  expect_filled<std::uint16_t>(gpu(), s(), memory(), 0x4242u);
  expect_filled<std::int32_t>(gpu(), s(), memory(), 0x12345678);
  expect_filled<std::int32_t>(gpu(), s(), memory(), 0x12341234);
  expect_filled<std::int32_t>(gpu(), s(), memory(), -1);
  expect_filled<float>(gpu(), s(), memory(), 1.5f);
}

TEST_F(cuda_fill, is_one_node_of_a_graph_for_every_pattern) {
  buffer<float> x{memory(), 10, s()};
  buffer<std::uint8_t> y{memory(), 10, s()};
  const graph made = capture(s(), [&](stream_ref c) {
    fill(c, write<float>{x}, 2.5f);
    fill(c, write<std::uint8_t>{y}, std::uint8_t{9});
  });
  EXPECT_EQ(made.nodes(), 2u);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 2.5f));
  EXPECT_EQ(read_back(s(), y.all()), std::vector<std::uint8_t>(10, 9));
}

TEST_F(cuda_fill, reaches_pinned_memory_and_refuses_pageable_memory) {
  pinned<float> p{gpu(), 10};
  fill(s(), write<float>{p.all()}, 6.0f);
  s().synchronize();
  EXPECT_EQ(p[9], 6.0f);
  std::vector<float> v(10);
  const std::string text = message_of<device_error>([&] { fill(s(), write<float>{all(v)}, 6.0f); });
  EXPECT_NE(text.find("pageable"), std::string::npos) << text;
}

TEST_F(cuda_fill, refuses_a_pattern_that_does_not_fit) {
  buffer<std::uint8_t> x{memory(), 10, s()};
  EXPECT_THROW(fill_bytes(s(), reinterpret_cast<std::byte*>(x.all().data()), 10, 0x01020304u, 4),
               device_error);
  EXPECT_THROW(fill_bytes(s(), reinterpret_cast<std::byte*>(x.all().data()) + 1, 4, 0x0102u, 2),
               device_error);
  EXPECT_THROW(fill_bytes(s(), reinterpret_cast<std::byte*>(x.all().data()), 9, 0x010203u, 3),
               device_error);
}

}  // namespace
}  // namespace reprise::test
