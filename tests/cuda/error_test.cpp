// How calls fail on a card: typed, named, and without a trace in later calls; and a lost device.
#include <cstdio>

#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_error = on_a_gpu;
using place = std::source_location;

TEST_F(cuda_error, of_memory_tells_what_was_asked_and_what_is_free) {
  const std::size_t too_much = 2 * gpu().memory().total;
  try {
    api().allocate(memory_kind::device, too_much, place::current());
    FAIL() << "twice the card's memory was given out";
  } catch (const out_of_memory& failure) {
    EXPECT_EQ(failure.asked(), too_much);
    EXPECT_GT(failure.free(), 0u);
    EXPECT_EQ(failure.call(), "allocate");
    EXPECT_EQ(failure.device(), gpu().name());
    EXPECT_EQ(std::string_view{failure.from().file_name()}.substr(
                  std::string_view{failure.from().file_name()}.rfind('/') + 1),
              "error_test.cpp");
  }
  EXPECT_EQ(error_slot(), 0);
  expect_usable(s());
}

TEST_F(cuda_error, of_a_launch_names_the_kernel_and_the_line) {
  const std::string text = message_of<device_error>(
      [&] { enqueue_kernel(s(), "too wide", &launch_too_many_threads, no_arguments{}); });
  EXPECT_EQ(text.find("kernel 'too wide' on cuda:"), 0u) << text;
  EXPECT_NE(text.find("cudaErrorInvalid"), std::string::npos) << text;  // …Value or …Configuration
  EXPECT_NE(text.find("error_test.cpp"), std::string::npos) << text;
  EXPECT_EQ(error_slot(), 0);
  expect_usable(s());
}

TEST_F(cuda_error, that_others_left_behind_is_not_blamed_on_the_next_kernel) {
  const buffer<float> x = floats(10, 0.0f);
  std::thread{[&] {
    try {
      external(s(), "untidy", {}, [](void*) { free_foreign_pinned(reinterpret_cast<float*>(64)); });
      ADD_FAILURE() << "the error of the external work was not seen";
    } catch (const device_error& failure) {
      EXPECT_NE(std::string{failure.what()}.find("untidy"), std::string::npos) << failure.what();
    }
    free_foreign_pinned(reinterpret_cast<float*>(64));  // outside of Reprise
    add_to(s(), x, 1.0f);
  }}.join();
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 1.0f));
}

TEST_F(cuda_error, names_a_handle_whose_owner_was_moved_from) {
  const std::string text =
      message_of<device_error>([&] { api().synchronize(stream_id::none, place::current()); });
  EXPECT_NE(text.find("moved from"), std::string::npos) << text;
  api().destroy(stream_id::none);
  api().destroy(event_id::none);
  api().destroy(graph_id::none);
  api().destroy(executable_id::none);
  api().abandon_capture(stream_id::none);
  EXPECT_FALSE(api().capturing(stream_id::none));
}

TEST_F(cuda_error, of_a_release_twice_is_reported) {
  std::byte* const block = api().allocate(memory_kind::device, 100, place::current());
  api().release(memory_kind::device, block);
  reports said;
  api().release(memory_kind::device, block);
  ASSERT_EQ(reports::texts().size(), 1u);
  EXPECT_NE(reports::texts()[0].find("released already"), std::string::npos);
}

TEST_F(cuda_error, of_a_close_with_things_alive_is_reported_and_they_are_freed) {
  reports said;
  {
    const std::unique_ptr<device_api> second = open_cuda(usable_card().value());
    second->create_stream(place::current());
    second->create_event(place::current());
    second->allocate(memory_kind::device, 100, place::current());
  }
  ASSERT_EQ(reports::texts().size(), 1u);
  EXPECT_NE(reports::texts()[0].find("1 events, 1 streams and 1 blocks"), std::string::npos)
      << reports::texts()[0];
  expect_usable(s());
}

// In a child process: nothing brings a device back.

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "not so: %s\n", what);
  std::_Exit(2);
}

template <class Call>
void require_says_lost(const char* name, Call&& call) {
  try {
    call();
  } catch (const device_error& failure) {
    const std::string text = failure.what();
    require(text.find("is lost for this process") != std::string::npos, text.c_str());
    require(text.find("cudaErrorIllegalAddress") != std::string::npos, text.c_str());
    return;
  }
  require(false, name);
}

[[noreturn]] void lose_a_device() {
  const place here = place::current();
  {
    device lost{open_cuda(usable_card().value())};
    device_api& api = static_cast<device_ref>(lost).api();
    stream s{lost};
    event e{lost};
    pool memory{lost};
    const buffer<float> x{memory, 10, s};
    pinned<float> host{lost, 10};
    const executable step =
        capture(s, [&](stream_ref c) { fill(c, write<float>{x}, 1.0f); }).instantiate(s);
    e.record(s);
    require_says_lost("the fault", [&] {  // at the launch already, if the card is quick
      enqueue_kernel(s, "stray", &write_to_nowhere, no_arguments{});
      s.synchronize();
    });

    require_says_lost("synchronize", [&] { s.synchronize(); });
    require_says_lost("allocate", [&] { api.allocate(memory_kind::device, 1, here); });
    require_says_lost("memory", [&] { api.memory(here); });
    require_says_lost("create_stream", [&] { stream another{lost}; });
    require_says_lost("create_event", [&] { event another{lost}; });
    require_says_lost("finished", [&] { (void)e.finished(); });
    require_says_lost("event", [&] { e.record(s); });
    require_says_lost("fill", [&] { fill(s, write<float>{x}, 1.0f); });
    require_says_lost("copy", [&] { copy(s, read<float>{x}, write<float>{host.all()}); });
    require_says_lost("host_call", [&] { host_call(s, "never", {}, [] {}); });
    require_says_lost("launch", [&] { step.launch(s); });
    require_says_lost("instantiate", [&] { capture(s, [](stream_ref) {}); });
    require(!api.capturing(static_cast<stream_ref>(s).id()), "no capture is left open");
  }  // destructors do not throw and do not repeat the fault line by line
  std::fprintf(stderr, "every call says so\n");
  std::exit(0);
}

TEST(a_lost_device_DeathTest, says_so_at_every_later_call) {
  if (!usable_card()) GTEST_SKIP() << "no GPU: " << why_no_cuda();
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(lose_a_device(), testing::ExitedWithCode(0), "every call says so");
}

}  // namespace
}  // namespace reprise::test
