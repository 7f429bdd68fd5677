// Copies, fills, host calls and external work, eagerly on a stream.
#include "reprise/device/enqueue.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using copy_on = on_each_device;
using fill_on = on_each_device;
using host_call_on = on_each_device;
using external_on = on_each_device;
using event_on = on_each_device;

std::vector<int> counted_up(std::size_t count) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

template <class T>
view<T> all(std::vector<T>& of) {
  return {of.data(), of.size()};
}

TEST_P(copy_on, goes_from_the_host_over_the_device_and_pinned_memory_back) {
  const std::vector<int> numbers = counted_up(1000);
  const buffer<int> a{memory(), 1000, s()};
  const buffer<int> b{memory(), 1000, s()};
  const pinned<int> p{dev(), 1000};
  const pinned<int> q{dev(), 1000};
  std::vector<int> out(1000);
  upload(s(), numbers, a);
  copy(s(), read<int>{a}, write<int>{b});
  copy(s(), read<int>{b}, write<int>{p});
  copy(s(), read<int>{p}, write<int>{q});
  fill(s(), write<int>{a}, 0);
  copy(s(), read<int>{q}, write<int>{a});
  copy(s(), read<int>{a}, write<int>{all(out)});
  s().synchronize();
  EXPECT_EQ(out, numbers);
  EXPECT_TRUE(std::ranges::equal(numbers, std::span{p.data(), p.size()}));
}

TEST_P(copy_on, from_pageable_memory_leaves_it_to_the_caller_at_once) {
  const buffer<int> x{memory(), 64, s()};
  std::vector<int> host(64, 1);
  upload(s(), host, x);
  std::ranges::fill(host, 2);  // D15: the copy has taken what was there
  EXPECT_EQ(read_back(s(), x), std::vector<int>(64, 1));
}

TEST_P(copy_on, stages_each_of_many_values_in_order) {
  const buffer<int> x{memory(), 4, s()};
  const buffer<int> y{memory(), 4, s()};
  for (int value = 0; value < 200; ++value) {
    upload(s(), std::vector<int>(4, value), x);
    copy(s(), read<int>{x}, write<int>{y});
    ASSERT_EQ(read_back(s(), y), std::vector<int>(4, value));
  }
}

TEST_P(copy_on, between_two_places_of_the_host_is_in_stream_order_too) {
  std::vector<int> from = counted_up(10);
  std::vector<int> to(10);
  copy(s(), read<int>{all(from)}, write<int>{all(to)});
  s().synchronize();
  EXPECT_EQ(to, from);
}

TEST_P(copy_on, into_a_larger_place_leaves_its_rest) {
  const auto x = filled<int>(3, 1);
  const auto y = filled<int>(5, 2);
  copy(s(), read<int>{x}, write<int>{y});
  EXPECT_EQ(read_back(s(), y), (std::vector<int>{1, 1, 1, 2, 2}));
}

TEST_P(copy_on, into_a_smaller_place_is_refused_and_changes_nothing) {
  const auto x = filled<int>(5, 1);
  const auto y = filled<int>(4, 2);
  const std::string message =
      message_of<usage_error>([&] { copy(s(), read<int>{x}, write<int>{y}); });
  EXPECT_TRUE(has(message, "20 bytes do not fit a destination of 16")) << message;
  EXPECT_EQ(read_back(s(), y), std::vector<int>(4, 2));
}

TEST_P(copy_on, with_a_null_side_is_refused) {
  const auto x = filled<int>(4, 1);
  const std::string message = message_of<device_error>(
      [&] { copy_bytes(s(), reinterpret_cast<const std::byte*>(x.all().data()), nullptr, 16); });
  expect_names(message, "copy", GetParam(), "enqueue_test.cpp");
  EXPECT_THROW(copy_bytes(s(), nullptr, reinterpret_cast<std::byte*>(x.all().data()), 16),
               device_error);
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
}

template <class T>
void expect_fills(pool& memory, stream_ref stream, T value, T around) {
  for (const std::size_t count : {1U, 2U, 3U, 5U, 7U, 31U, 255U, 1023U}) {
    const buffer<T> x{memory, count + 2, stream};
    fill(stream, write<T>{x}, around);
    fill(stream, write<T>{x.all().subview(1, count)}, value);
    std::vector<T> wanted(count + 2, value);
    wanted.front() = wanted.back() = around;
    ASSERT_EQ(read_back(stream, x), wanted) << count << " elements of " << sizeof(T) << " bytes";
  }
}

TEST_P(fill_on, writes_every_count_of_bytes_and_no_neighbour) {
  expect_fills<std::uint8_t>(memory(), s(), 0xa5, 0x5a);
}
TEST_P(fill_on, writes_every_count_of_two_bytes_and_no_neighbour) {
  expect_fills<std::uint16_t>(memory(), s(), 0xbeef, 0x1234);
}
TEST_P(fill_on, writes_every_count_of_four_bytes_and_no_neighbour) {
  expect_fills<std::uint32_t>(memory(), s(), 0xdeadbeefU, 0x01020304U);
  expect_fills<float>(memory(), s(), -1.5F, 0.25F);
}

TEST_P(fill_on, refuses_a_pattern_that_does_not_fit_and_writes_nothing) {
  const auto x = filled<std::uint8_t>(16, std::uint8_t{7});
  auto* const at = reinterpret_cast<std::byte*>(x.all().data());
  for (const auto& [bytes, pattern_bytes] : std::vector<std::pair<std::size_t, std::uint8_t>>{
           {3, 2}, {7, 4}, {2, 4}, {8, 3}, {8, 0}, {8, 8}}) {
    const std::string message =
        message_of<device_error>([&] { fill_bytes(s(), at, bytes, 0x01010101U, pattern_bytes); });
    expect_names(message, "fill", GetParam(), "enqueue_test.cpp");
  }
  EXPECT_THROW(fill_bytes(s(), at + 1, 4, 1, 4), device_error) << "not aligned to the pattern";
  EXPECT_EQ(read_back(s(), x), std::vector<std::uint8_t>(16, 7));
}

TEST_P(fill_on, refuses_pageable_memory_which_a_device_does_not_write) {
  std::vector<int> host(8, 1);
  const std::string message =
      message_of<device_error>([&] { fill(s(), write<int>{all(host)}, 2); });
  expect_names(message, "fill", GetParam(), "enqueue_test.cpp");
  s().synchronize();
  EXPECT_EQ(host, std::vector<int>(8, 1));
}

TEST_P(fill_on, writes_pinned_memory) {
  const pinned<int> p{dev(), 5};
  fill(s(), write<int>{p}, 6);
  s().synchronize();
  EXPECT_TRUE(std::ranges::equal(std::span{p.data(), p.size()}, std::vector<int>(5, 6)));
}

TEST_P(host_call_on, runs_between_the_works_around_it) {
  const pinned<int> p{dev(), 1};
  const auto one = filled<int>(1, 1);
  const auto two = filled<int>(1, 2);
  std::vector<int> seen;
  p[0] = 0;
  const auto look = [&] { seen.push_back(p[0]); };
  host_call(s(), "look", {}, look);
  copy(s(), read<int>{one}, write<int>{p});
  host_call(s(), "look", {}, look);
  copy(s(), read<int>{two}, write<int>{p});
  host_call(s(), "look", {}, look);
  s().synchronize();
  EXPECT_EQ(seen, (std::vector<int>{0, 1, 2}));
}

TEST_P(host_call_on, keeps_its_function_beyond_the_call) {
  const auto value = std::make_shared<int>(0);
  {
    const std::function<void()> raise = [value] { ++*value; };
    for (int i = 0; i < 20; ++i) host_call(s(), "raise", {}, raise);
  }
  s().synchronize();
  EXPECT_EQ(*value, 20);
}

TEST_P(external_on, is_called_once_with_the_native_stream) {
  int calls = 0;
  void* native = &calls;
  external(s(), "library", {}, [&](void* stream) {
    ++calls;
    native = stream;
  });
  s().synchronize();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(native == nullptr, dev().bodies() == device_kind::cpu);
}

TEST_P(external_on, passes_its_exception_to_the_caller_and_leaves_the_stream) {
  EXPECT_THROW(external(s(), "library", {}, [](void*) { throw std::length_error{"too long"}; }),
               std::length_error);
  expect_usable(s());
}

TEST(external_on_cpu, runs_in_order_with_the_works_around_it) {
  const device opened = open_for_test("cpu");
  const stream work{opened};
  pool memory{opened};
  const buffer<int> x{memory, 1, work};
  int seen = 0;
  fill(work, write<int>{x}, 1);
  external(work, "double", {access_of(inout<int>{x})}, [&](void*) { x.all()[0] *= 2; });
  external(work, "look", {access_of(read<int>{x})}, [&](void*) { seen = x.all()[0]; });
  fill(work, write<int>{x}, 9);
  work.synchronize();
  EXPECT_EQ(seen, 2);
}

TEST_P(event_on, that_was_never_recorded_holds_nobody_and_counts_as_finished) {
  const event never{dev()};
  never.wait(s());
  never.synchronize();
  EXPECT_TRUE(never.finished());
  expect_usable(s());
}

TEST_P(event_on, orders_work_across_streams) {
  const stream other{dev()};
  event passed{dev()};
  const buffer<int> x{memory(), 1000, s()};
  for (int i = 0; i <= 20; ++i) fill(s(), write<int>{x}, i);
  passed.record(s());
  passed.wait(other);
  EXPECT_EQ(read_back(other, x), std::vector<int>(1000, 20));
}

TEST_P(event_on, is_finished_once_the_host_has_waited_for_it) {
  event passed{dev()};
  const pinned<int> p{dev(), 1};
  p[0] = 0;
  const auto x = filled<int>(1, 5);
  copy(s(), read<int>{x}, write<int>{p});
  passed.record(s());
  passed.synchronize();
  EXPECT_TRUE(passed.finished());
  EXPECT_EQ(p[0], 5);
}

TEST_P(event_on, of_one_device_is_refused_by_a_stream_of_another) {
  const device other = open_for_test("cpu");
  const stream foreign{other};
  event ours{dev()};
  for (const std::string& message : {message_of<usage_error>([&] { ours.record(foreign); }),
                                     message_of<usage_error>([&] { ours.wait(foreign); })}) {
    EXPECT_TRUE(has(message, GetParam())) << message;
    EXPECT_TRUE(has(message, "cpu")) << message;
  }
}

TEST_P(event_on, is_moved_with_what_it_stands_for) {
  event first{dev()};
  first.record(s());
  event second{std::move(first)};
  second.synchronize();
  event third{dev()};
  third = std::move(second);
  EXPECT_TRUE(third.finished());
}

INSTANTIATE_TEST_SUITE_P(devices, copy_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, fill_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, host_call_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, external_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, event_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
