// What the calls that enqueue check by themselves, and what they hand to the device.
#include "reprise/device/enqueue.hpp"

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using copy_on = on_each_device;
using external_on = on_each_device;
using event_on = on_each_device;

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
INSTANTIATE_TEST_SUITE_P(devices, external_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, event_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
