// Rule 22: failing calls are typed, and name the call, the device and the line; the cause is never
// hidden behind the capture it broke.
#include <limits>

#include "tests/conformance/conformance.hpp"
#include "tests/device/short_device.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;

TEST_P(rule_22, a_copy_with_a_null_side_is_refused) {
  const auto x = filled<int>(4, 1);
  auto* const at = reinterpret_cast<std::byte*>(x.all().data());
  for (const std::string& message :
       {message_of<device_error>([&] { copy_bytes(s(), at, nullptr, 16); }),
        message_of<device_error>([&] { copy_bytes(s(), nullptr, at, 16); })}) {
    expect_names(message, "copy", GetParam(), "errors_test.cpp");
    EXPECT_TRUE(has(message, "null")) << message;
  }
  EXPECT_EQ(read_back(s(), x), std::vector<int>(4, 1));
}

TEST_P(rule_22, a_fill_whose_pattern_does_not_fit_is_refused_and_writes_nothing) {
  const auto x = filled<std::uint8_t>(16, std::uint8_t{7});
  auto* const at = reinterpret_cast<std::byte*>(x.all().data());
  for (const auto& [bytes, pattern_bytes] : std::vector<std::pair<std::size_t, std::uint8_t>>{
           {3, 2}, {7, 4}, {10, 4}, {2, 4}, {8, 3}, {9, 3}, {8, 0}, {8, 8}}) {
    const std::string message =
        message_of<device_error>([&] { fill_bytes(s(), at, bytes, 0x01010101U, pattern_bytes); });
    expect_names(message, "fill", GetParam(), "errors_test.cpp");
  }
  EXPECT_THROW(fill_bytes(s(), at + 1, 4, 1, 4), device_error) << "not aligned to the pattern";
  EXPECT_THROW(fill_bytes(s(), at + 1, 4, 1, 2), device_error);
  EXPECT_EQ(read_back(s(), x), std::vector<std::uint8_t>(16, 7));
}

TEST_P(rule_22, a_fill_of_pageable_memory_is_refused) {
  std::vector<int> host(8, 1);
  const std::string message = message_of<device_error>([&] {
    fill(s(), write<int>{view<int>{host.data(), host.size()}}, 2);
  });
  expect_names(message, "fill", GetParam(), "errors_test.cpp");
  EXPECT_TRUE(has(message, "pageable")) << message;
  s().synchronize();
  EXPECT_EQ(host, std::vector<int>(8, 1));
}

TEST_P(rule_22, an_exception_of_external_work_is_the_callers) {
  if (runs_later() && !on_cuda()) {
    GTEST_SKIP() << "simulated external work runs later, when nobody can catch what it throws";
  }
  EXPECT_THROW(external(s(), "library", {}, [](void*) { throw std::length_error{"too long"}; }),
               std::length_error);
  expect_clean(s());
}

// D5
TEST_P(rule_22, D5_an_exception_of_a_captures_body_arrives_as_it_is) {
  struct own_error {
    int number;
  };
  const std::size_t before = leased();
  const reports quiet;
  const auto deep = [&](stream_ref c) {
    const buffer<int> y{memory(), 100000, c};
    fill(c, write<int>{y}, 1);
    const pinned<int> p{dev(), 100};
    copy(c, read<int>{y.all().subview(0, 100)}, write<int>{p});
    throw own_error{42};
  };
  try {
    capture(s(), [&](stream_ref c) {
      const event inside{dev()};
      deep(c);
    });
    FAIL() << "the exception was swallowed";
  } catch (const own_error& arrived) {
    EXPECT_EQ(arrived.number, 42);
  }
  api().settle();
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  EXPECT_EQ(dev().state().open_captures, 0);
  EXPECT_GT(leased(), before) << "the pool holds its slab for the next one";
  expect_clean(s());
  EXPECT_EQ(reports::taken(), std::vector<std::string>{});
}

TEST_P(rule_22, sizes_that_no_address_space_has_are_out_of_memory) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t bytes : {most, most - 254, most - 255, most - 300000, most / 2 + 1}) {
    const std::string message = message_of<out_of_memory>([&] {
      const block refused{memory(), bytes, s()};
    });
    expect_names(message, "allocate", GetParam(), "errors_test.cpp");
    EXPECT_TRUE(has(message, std::to_string(bytes) + " bytes asked")) << message;
  }
  // Their bytes would wrap around to a few.
  EXPECT_THROW((buffer<double>{memory(), most / 8 + 2, s()}), out_of_memory);
  EXPECT_THROW((buffer<double>{memory(), most / 4, s()}), out_of_memory);
  EXPECT_THROW((pinned<double>{dev(), most / 8 + 2}), out_of_memory);
  EXPECT_EQ(memory().used(), 0U);
  EXPECT_EQ(memory().bytes(), 0U);
  EXPECT_EQ(dev().pinned_bytes(), 0U);
  expect_clean(s());
}

// More than the device has, asked of the device itself.
class rule_22_out_of_memory : public conformance {
 protected:
  void SetUp() override {
    if (sanitized) GTEST_SKIP() << "a sanitizer's allocator ends the process instead";
  }
  std::size_t too_much() const {
    return on_cuda() ? 2 * dev().memory().total : std::size_t{1} << 60;
  }
};

TEST_P(rule_22_out_of_memory, says_what_was_asked_and_what_is_free) {
  try {
    api().allocate(memory_kind::device, too_much(), place::current());
    FAIL() << "twice the memory was given out";
  } catch (const out_of_memory& failure) {
    EXPECT_EQ(failure.asked(), too_much());
    EXPECT_GT(failure.free(), 0U);
    EXPECT_EQ(failure.call(), "allocate");
    EXPECT_EQ(failure.device(), dev().name());
    EXPECT_TRUE(std::string_view{failure.from().file_name()}.ends_with("errors_test.cpp"));
  }
  expect_clean(s());
}

TEST_P(rule_22_out_of_memory, D3_in_a_capture_is_not_a_broken_capture) {
  const auto x = number();
  try {
    capture(s(), [&](stream_ref c) {
      append(c, x, 1);
      api().allocate(memory_kind::device, too_much(), place::current());
    });
    FAIL() << "twice the memory was given out";
  } catch (const out_of_memory& failure) {
    EXPECT_EQ(failure.asked(), too_much());
    EXPECT_GT(failure.free(), 0U);
  }
  expect_clean(s());
  EXPECT_EQ(value_of(s(), x), 0);
}

TEST_P(rule_22_out_of_memory, in_a_capture_may_be_done_without) {
  const auto x = number();
  const graph made = capture(s(), [&](stream_ref c) {
    EXPECT_THROW(api().allocate(memory_kind::device, too_much(), place::current()), out_of_memory);
    append(c, x, 1);
  });
  EXPECT_EQ(made.size(), 1U);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(value_of(s(), x), 1);
}

INSTANTIATE_TEST_SUITE_P(, rule_22_out_of_memory, each_device(), device_of);

// A device of 1 MiB, most of which a pool that is gone still holds.
struct one_mebibyte {
  explicit one_mebibyte(const std::string& spec)
      : opened{std::make_unique<short_device>(open_bare(spec), state)} {
    const block gone{*std::make_unique<pool>(opened), 960 * kib, work};
  }
  short_memory state{.limit = 1024 * kib};
  device opened;
  stream work{opened};
  pool memory{opened, "test"};
};

// Nothing is freed and nobody waits while the capture is open; the stream goes on.
TEST_P(rule_22, D3_out_of_memory_is_not_a_broken_capture) {
  one_mebibyte with{GetParam()};
  const buffer<int> x{with.memory, 8, with.work};
  try {
    capture(with.work, [&](stream_ref c) {
      fill(c, write<int>{x}, 1);
      const block refused{with.memory, 128 * kib, c};
    });
    FAIL() << "there was memory";
  } catch (const out_of_memory& failure) {
    EXPECT_EQ(failure.asked(), 128 * kib);
    EXPECT_EQ(failure.free(), 0U);
  }
  EXPECT_EQ(with.state.refused, 1);
  EXPECT_EQ(with.state.disturbed, 0);

  fill(with.work, write<int>{x}, 2);
  EXPECT_EQ(read_back(with.work, x), std::vector<int>(8, 2));
  const graph made = capture(with.work, [&](stream_ref c) { fill(c, write<int>{x}, 3); });
  const executable replayed = made.instantiate(with.work);
  replayed.launch(with.work);
  EXPECT_EQ(read_back(with.work, x), std::vector<int>(8, 3));
  const block outside{with.memory, 128 * kib, with.work};
}

TEST_P(rule_22, D3_a_capture_whose_body_goes_on_without_the_memory_is_whole) {
  one_mebibyte with{GetParam()};
  const buffer<int> x{with.memory, 8, with.work};
  const graph made = capture(with.work, [&](stream_ref c) {
    EXPECT_THROW((block{with.memory, 2048 * kib, c}), out_of_memory);
    fill(c, write<int>{x}, 3);
  });
  const executable replayed = made.instantiate(with.work);
  replayed.launch(with.work);
  EXPECT_EQ(read_back(with.work, x), std::vector<int>(8, 3));
}

}  // namespace
}  // namespace reprise::test
