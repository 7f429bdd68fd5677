// Streams and events on a card: order, and what waits for what.
#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_stream = on_a_gpu;
using cuda_event = on_a_gpu;

TEST_F(cuda_stream, says_what_it_is) {
  const device_traits& traits = gpu().traits();
  EXPECT_EQ(traits.name.rfind("cuda:", 0), 0u);
  EXPECT_EQ(traits.bodies, device_kind::cuda);
  EXPECT_EQ(traits.threads, 1);
  EXPECT_FALSE(traits.model.empty());
  EXPECT_FALSE(traits.arch_chain.empty());
}

TEST_F(cuda_stream, runs_its_work_in_order) {
  const buffer<float> x = floats(1000, 0.0f);
  for (int i = 1; i <= 10; ++i) add_to(s(), x, static_cast<float>(i));
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(1000, 55.0f));
}

TEST_F(cuda_stream, does_not_wait_for_another) {
  const buffer<float> x = floats(10, 1.0f);
  s().synchronize();
  stream other{gpu()};
  pinned<float> out{gpu(), 10};  // before: pinning may wait for the whole card
  out[9] = 0.0f;
  held_stream held{gpu(), s()};
  copy(other, read<float>{x}, write<float>{out.all()});
  other.synchronize();
  EXPECT_EQ(out[9], 1.0f);
}

TEST_F(cuda_stream, waits_for_its_work_when_it_is_destroyed) {
  pinned<float> out{gpu(), 1};
  out[0] = 0.0f;
  const buffer<float> x = floats(1, 7.0f);
  s().synchronize();
  std::optional<stream> dying{gpu()};
  {
    held_stream held{gpu(), *dying};
    copy(*dying, read<float>{x}, write<float>{out.all()});
  }
  dying.reset();
  EXPECT_EQ(out[0], 7.0f);
}

TEST_F(cuda_event, that_was_never_recorded_counts_as_finished_and_holds_nobody) {
  event never{gpu()};
  EXPECT_TRUE(never.finished());
  never.synchronize();
  never.wait(s());
  s().synchronize();
}

TEST_F(cuda_event, is_finished_when_the_work_before_it_is) {
  event passed{gpu()};
  held_stream held{gpu(), s()};
  passed.record(s());
  EXPECT_FALSE(passed.finished());
  EXPECT_EQ(error_slot(), 0);  // "not ready" is an answer, not an error
  held.release();
  passed.synchronize();
  EXPECT_TRUE(passed.finished());
}

TEST_F(cuda_event, orders_work_across_streams) {
  const buffer<float> x = floats(1000, 1.0f);
  stream other{gpu()};
  event written{gpu()};
  pinned<float> out{gpu(), 1000};
  held_stream held{gpu(), s()};
  add_to(s(), x, 1.0f);
  written.record(s());
  written.wait(other);
  copy(other, read<float>{x}, write<float>{out.all()});
  event read_done{gpu()};
  read_done.record(other);
  EXPECT_FALSE(read_done.finished());
  held.release();
  read_done.synchronize();
  EXPECT_EQ(out[999], 2.0f);
}

TEST_F(cuda_event, may_be_used_from_another_thread) {
  const buffer<float> x = floats(100, 1.0f);
  event written{gpu()};
  add_to(s(), x, 1.0f);
  written.record(s());
  std::vector<float> seen;
  std::thread reader{[&] {
    stream other{gpu()};
    written.wait(other);
    seen = read_back(other, x.all());
  }};
  reader.join();
  EXPECT_EQ(seen, std::vector<float>(100, 2.0f));
}

TEST_F(cuda_stream, gives_blocks_that_are_aligned_to_256_bytes) {
  for (const memory_kind kind : {memory_kind::device, memory_kind::pinned}) {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{300}}) {
      std::byte* a = api().allocate(kind, bytes, std::source_location::current());
      std::byte* b = api().allocate(kind, bytes, std::source_location::current());
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 256, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 256, 0u);
      api().release(kind, a);
      api().release(kind, b);
    }
  }
}

TEST_F(cuda_stream, s_device_reports_its_memory) {
  const memory_figures figures = gpu().memory();
  EXPECT_GT(figures.total, std::size_t{1} << 30);
  EXPECT_GT(figures.free, 0u);
  EXPECT_LE(figures.free, figures.total);
}

}  // namespace
}  // namespace reprise::test
