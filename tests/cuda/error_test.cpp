// How calls fail on a card: by CUDA's names, and without a trace in later calls.
#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_error = on_a_gpu;
using place = std::source_location;

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
  const reports said;
  api().release(memory_kind::device, block);
  const std::vector<std::string> heard = reports::taken();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(has(heard[0], "released already")) << heard[0];
}

TEST_F(cuda_error, of_a_close_with_things_alive_is_reported_and_they_are_freed) {
  const reports said;
  {
    const std::unique_ptr<device_api> second = open_cuda(usable_card().value());
    second->create_stream(stream_priority::usual, place::current());
    second->create_event(place::current());
    second->allocate(memory_kind::device, 100, place::current());
  }
  const std::vector<std::string> heard = reports::taken();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(has(heard[0], "1 events, 1 streams and 1 blocks")) << heard[0];
  expect_usable(s());
}

}  // namespace
}  // namespace reprise::test
