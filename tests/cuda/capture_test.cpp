// Captures, as far as they are CUDA's own: whose thread ends one, and what breaks one from below.
#include <algorithm>

#include "gpu.hpp"

namespace reprise::test {
namespace {

using place = std::source_location;
using cuda_capture = on_a_gpu;

TEST_F(cuda_capture, refuses_a_kernel_that_cannot_be_launched_by_name) {
  const buffer<float> x = floats(1, 0.0f);
  std::string refusal;
  std::string later;
  const std::string end = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      add_to(c, x, 1.0f);
      refusal = message_of<capture_error>(
          [&] { enqueue_kernel(c, "too wide", &launch_too_many_threads, no_arguments{}); });
      later = message_of<capture_error>([&] { add_to(c, x, 1.0f); });
    });
  });
  expect_names(refusal, "kernel 'too wide'", gpu().name(), "capture_test.cpp");
  EXPECT_TRUE(has(later, "kernel 'too wide'")) << later;
  EXPECT_TRUE(end.starts_with("end_capture")) << end;
  EXPECT_TRUE(has(end, "kernel 'too wide'")) << end;
  expect_usable(s());
  EXPECT_EQ(read_back(s(), x.all()).front(), 0.0f);
}

TEST_F(cuda_capture, ends_on_the_thread_that_began_it_only) {
  const buffer<float> x = floats(10, 0.0f);
  api().begin_capture(s().id(), place::current());
  add_to(s(), x, 1.0f);
  std::string text;
  std::thread{[&] {
    text = message_of<capture_error>([&] { api().end_capture(s().id(), place::current()); });
    const reports said;
    api().abandon_capture(s().id());
    EXPECT_EQ(reports::taken().size(), 1u);
  }}.join();
  EXPECT_TRUE(has(text, "another thread")) << text;
  const graph_id made = api().end_capture(s().id(), place::current());
  EXPECT_EQ(api().nodes(made, place::current()).size(), 1u);
  api().destroy(made);
  expect_usable(s());
}

TEST_F(cuda_capture, that_cuda_broke_is_abandoned_like_any_other) {
  const buffer<float> x = floats(10, 0.0f);
  const reports said;
  api().begin_capture(s().id(), place::current());
  EXPECT_THROW(external(s(), "breaks it", {}, [](void* native) { synchronize_native(native); }),
               capture_error);
  api().abandon_capture(s().id());
  expect_usable(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 0.0f));
  EXPECT_TRUE(reports::taken().empty());
}

TEST_F(cuda_capture, that_external_work_breaks_names_it) {
  const std::string text = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      external(c, "an impatient library", {}, [](void* native) { synchronize_native(native); });
    });
  });
  EXPECT_TRUE(has(text, "an impatient library")) << text;
  expect_usable(s());
}

TEST_F(cuda_capture, takes_pinned_memory_that_others_allocated) {
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

}  // namespace
}  // namespace reprise::test
