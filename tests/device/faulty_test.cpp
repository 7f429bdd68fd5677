// The faulty decorator: the n-th call fails, once, with the right kind of error, and has done
// nothing.
#include "reprise/device/faulty.hpp"

#include "tests/device/support.hpp"

namespace reprise::test {
namespace {

class faulty_on : public testing::TestWithParam<std::string> {
 protected:
  template <class Error, class Call>
  void expect_struck(std::string_view name, Call&& call) {
    plan->fail_call(1);
    EXPECT_FALSE(plan->fired());
    const std::string message = message_of<Error>(call);
    EXPECT_TRUE(message.starts_with(name)) << message;
    EXPECT_TRUE(has(message, "injected fault")) << message;
    EXPECT_TRUE(has(message, GetParam())) << message;
    EXPECT_TRUE(has(message, "faulty_test.cpp")) << message;
    EXPECT_TRUE(plan->fired());
    call();  // once
  }

  std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
  device opened{faulty(open_bare(GetParam()), plan)};
  stream work{opened};
  pool memory{opened};
  buffer<int> x{memory, 4, work};
};

TEST_P(faulty_on, fails_each_kind_of_call_with_the_kind_of_error_it_would_have) {
  event passed{opened};
  const graph made = capture(work, [](stream_ref) {});
  const executable replayed = made.instantiate(work);
  expect_struck<device_error>("fill on", [&] { fill(work, write<int>{x}, 1); });
  expect_struck<device_error>("copy on", [&] { copy(work, read<int>{x}, write<int>{x}); });
  expect_struck<device_error>("host call on", [&] { host_call(work, "h", {}, [] {}); });
  expect_struck<device_error>("external on", [&] { external(work, "e", {}, [](void*) {}); });
  expect_struck<device_error>("event record on", [&] { passed.record(work); });
  expect_struck<device_error>("event wait on", [&] { passed.wait(work); });
  expect_struck<device_error>("query on", [&] { (void)passed.finished(); });
  expect_struck<device_error>("synchronize on", [&] { passed.synchronize(); });
  expect_struck<device_error>("synchronize on", [&] { work.synchronize(); });
  expect_struck<device_error>("create_stream on", [&] { const stream s{opened}; });
  expect_struck<device_error>("create_event on", [&] { const event e{opened}; });
  expect_struck<device_error>("instantiate on", [&] { (void)made.instantiate(work); });
  expect_struck<device_error>("launch on", [&] { replayed.launch(work); });
  expect_struck<capture_error>("begin_capture on", [&] { capture(work, [](stream_ref) {}); });
  expect_struck<out_of_memory>("allocate (injected fault) on", [&] {
    const pinned<int> p{opened, 4};
  });
  work.synchronize();
}

TEST_P(faulty_on, fails_the_nth_call_and_no_other) {
  for (std::uint64_t n = 1; n <= 5; ++n) {
    plan->fail_call(n);
    for (std::uint64_t i = 1; i <= 10; ++i) {
      const auto one = [&] { fill(work, write<int>{x}, static_cast<int>(i)); };
      if (i == n) {
        EXPECT_THROW(one(), device_error);
      } else {
        EXPECT_NO_THROW(one());
      }
    }
  }
  work.synchronize();
}

TEST_P(faulty_on, does_nothing_before_it_is_armed_or_when_it_is_disarmed) {
  for (int i = 0; i < 10; ++i) fill(work, write<int>{x}, i);
  plan->fail_call(3);
  plan->fail_call(0);
  for (int i = 0; i < 10; ++i) fill(work, write<int>{x}, i);
  EXPECT_FALSE(plan->fired());
  work.synchronize();
}

TEST_P(faulty_on, has_not_done_what_failed) {
  fill(work, write<int>{x}, 1);
  plan->fail_call(1);
  EXPECT_THROW(fill(work, write<int>{x}, 2), device_error);
  EXPECT_EQ(read_back(work, x), std::vector<int>(4, 1));

  plan->fail_call(1);
  EXPECT_THROW(capture(work, [](stream_ref) {}), capture_error);
  EXPECT_FALSE(stream_ref{work}.capturing());
}

TEST_P(faulty_on, that_fails_the_end_of_a_capture_leaves_the_stream_usable) {
  plan->fail_call(3);  // begin, fill, end
  const std::string message = message_of<capture_error>(
      [&] { capture(work, [&](stream_ref c) { fill(c, write<int>{x}, 2); }); });
  EXPECT_TRUE(message.starts_with("end_capture on")) << message;
  EXPECT_FALSE(stream_ref{work}.capturing());
  fill(work, write<int>{x}, 3);
  EXPECT_EQ(read_back(work, x), std::vector<int>(4, 3));
}

TEST_P(faulty_on, says_whether_it_fired_since_it_was_armed) {
  plan->fail_call(1);
  EXPECT_THROW(fill(work, write<int>{x}, 1), device_error);
  EXPECT_TRUE(plan->fired());
  plan->fail_call(100);
  EXPECT_FALSE(plan->fired()) << "else a walk over all n with one plan never ends";
}

// What a failing device does to a pool: the figures and the memory are as before.
TEST_P(faulty_on, that_has_no_slab_leaves_the_pool_as_it_was) {
  const std::size_t bytes = memory.bytes();
  plan->fail_call(1);
  EXPECT_THROW((block{memory, 100000, work}), out_of_memory);
  EXPECT_EQ(memory.bytes(), bytes);
  const block fits{memory, 100000, work};
}

TEST_P(faulty_on, that_makes_or_records_no_event_leaves_the_block_with_its_stream) {
  const stream other{opened};
  { const block freed{memory, 1000 * kib, work}; }
  for (std::uint64_t n = 1; n <= 3; ++n) {  // create, record, wait
    plan->fail_call(n);
    EXPECT_THROW((block{memory, 1000 * kib, other}), device_error);
    EXPECT_TRUE(plan->fired());
    EXPECT_EQ(memory.used(), 256U);
  }
  const block again{memory, 1000 * kib, other};
}

TEST_P(faulty_on, that_cannot_wait_is_asked_twice_before_slabs_are_given_up) {
  const reports heard;
  auto gone = std::make_unique<pool>(device_ref{opened}, "gone");
  { const block freed{*gone, 1000, work}; }
  plan->fail_call(1);
  gone.reset();
  EXPECT_EQ(device_ref{opened}.state().slabs->leased_bytes(), memory.bytes());
  EXPECT_EQ(reports::taken().size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(devices, faulty_on, each_device(), device_of);

}  // namespace
}  // namespace reprise::test
