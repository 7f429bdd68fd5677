// Pools and buffers as owners: moved, assigned, and given to another device.
#include "reprise/device/memory.hpp"

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

using pool_on = on_each_device;
using buffer_on = on_each_device;

TEST_P(pool_on, knows_its_device_and_its_label) {
  const pool named{dev(), "weights"};
  EXPECT_EQ(named.label(), "weights");
  EXPECT_TRUE(named.device() == dev());
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

INSTANTIATE_TEST_SUITE_P(devices, pool_on, each_device(), device_of);
INSTANTIATE_TEST_SUITE_P(devices, buffer_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
