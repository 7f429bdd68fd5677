// Streams, graphs and executables of others, through the open door.
#include <algorithm>
#include <memory>

#include "foreign.hpp"
#include "gpu.hpp"
#include "reprise/sim/device.hpp"

namespace reprise::test {
namespace {

class borrowed : public on_a_gpu {
 protected:
  void SetUp() override {
    on_a_gpu::SetUp();
    if (!IsSkipped()) theirs_ = foreign::make_stream();
  }
  void TearDown() override {
    if (theirs_ != nullptr) foreign::destroy_stream(theirs_);
  }
  void* theirs() const { return theirs_; }
  stream_ref lent() { return foreign::borrow_stream(gpu(), theirs_); }

 private:
  void* theirs_ = nullptr;
};

TEST_F(borrowed, stream_takes_work_in_order_with_its_owners) {
  const buffer<float> x = floats(1000, 1.0f);
  s().synchronize();
  foreign::add(theirs(), x.all().data(), x.size(), 1.0f);
  add_to(lent(), x, 2.0f);
  foreign::add(theirs(), x.all().data(), x.size(), 4.0f);
  lent().synchronize();
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(1000, 8.0f));
}

TEST_F(borrowed, stream_is_the_same_each_time_and_stays_its_owners) {
  EXPECT_EQ(lent(), lent());
  event passed{gpu()};
  passed.record(lent());
  passed.wait(s());
  s().synchronize();
  EXPECT_FALSE(lent().capturing());
}

TEST_F(borrowed, default_stream_is_refused) {
  EXPECT_THROW(foreign::borrow_default_stream(gpu()), usage_error);
}

TEST_F(borrowed, stream_is_refused_by_a_device_that_is_no_card) {
  const device cpu{sim::open_cpu(1)};
  EXPECT_THROW(foreign::borrow_stream(cpu, theirs()), usage_error);
}

TEST_F(borrowed, stream_is_captured_by_reprise_too) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  const graph made = capture(lent(), [&](stream_ref c) { add_to(c, x, 3.0f); });
  made.instantiate(lent()).launch(lent());
  EXPECT_EQ(read_back(lent(), x.all()), std::vector<float>(10, 3.0f));
}

// Their capture: their kernel, ours, theirs.
struct mixed_graph {
  mixed_graph(device_ref gpu, void* stream, const buffer<float>& x,
              const std::function<void()>& more)
      : stream_of_theirs{stream} {
    foreign::begin_capture(stream);
    foreign::add(stream, x.all().data(), x.size(), 1.0f);
    const stream_ref lent = foreign::borrow_stream(gpu, stream);
    EXPECT_TRUE(lent.capturing());
    ours = enqueue_kernel_id(lent, x, 10.0f);
    if (more) more();
    foreign::add(stream, x.all().data(), x.size(), 100.0f);
    graph = foreign::end_capture(stream);
    EXPECT_FALSE(lent.capturing());
    executable = foreign::instantiate(graph);
  }
  ~mixed_graph() {
    foreign::destroy_executable(executable);
    foreign::destroy_graph(graph);
  }
  mixed_graph(const mixed_graph&) = delete;
  mixed_graph& operator=(const mixed_graph&) = delete;

  static node_id enqueue_kernel_id(stream_ref on, const buffer<float>& x, float by) {
    const add_arguments arguments{x.all().data(), x.size(), by};
    work what;
    what.kind = work_kind::kernel;
    what.label = "ours";
    what.place = std::source_location::current();
    what.kernel = {&add, reinterpret_cast<const std::byte*>(&arguments), sizeof arguments, {}};
    return enqueue(on, what);
  }

  void* stream_of_theirs;
  node_id ours = node_id::none;
  void* graph = nullptr;
  void* executable = nullptr;
};

TEST_F(borrowed, graph_tells_its_works_from_its_owners) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  const mixed_graph made{gpu(), theirs(), x, {}};
  ASSERT_NE(made.ours, node_id::none);
  const std::vector<node_row> rows = foreign::borrow_graph(gpu(), made.graph).nodes();
  ASSERT_EQ(rows.size(), 3u);
  int of_ours = 0;
  for (const node_row& row : rows) {
    EXPECT_EQ(row.kind, node_kind::kernel);
    if (row.id == node_id::none) continue;
    ++of_ours;
    EXPECT_EQ(row.id, made.ours);
    EXPECT_EQ(row.label, "ours");
  }
  EXPECT_EQ(of_ours, 1);
}

TEST_F(borrowed, executable_is_launched_and_our_work_in_it_switched) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  const mixed_graph made{gpu(), theirs(), x, {}};
  const executable_ref step = foreign::borrow_executable(gpu(), made.executable);
  step.launch(lent());
  EXPECT_EQ(read_back(lent(), x.all()).front(), 111.0f);
  step.enable(made.ours, false);
  foreign::launch(made.executable, theirs());
  EXPECT_EQ(read_back(lent(), x.all()).front(), 212.0f);
  step.enable(made.ours, true);
  step.launch(lent());
  EXPECT_EQ(read_back(lent(), x.all()).front(), 323.0f);
}

TEST_F(borrowed, executable_refuses_works_that_are_not_in_it) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  const mixed_graph made{gpu(), theirs(), x, {}};
  const executable_ref step = foreign::borrow_executable(gpu(), made.executable);
  EXPECT_THROW(step.enable(node_id{1u << 30}, false), usage_error);
  EXPECT_EQ(error_slot(), 0);
}

TEST_F(borrowed, graph_of_any_kind_can_be_looked_at) {
  void* const made = foreign::graph_with_a_child();
  const std::vector<node_row> rows = foreign::borrow_graph(gpu(), made).nodes();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kind, node_kind::other);
  EXPECT_EQ(rows[0].id, node_id::none);
  foreign::destroy_graph(made);
}

TEST_F(borrowed, capture_keeps_our_host_functions_until_its_graph_is_gone) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  auto calls = std::make_shared<std::atomic<int>>(0);
  {
    const mixed_graph made{gpu(), theirs(), x,
                           [&] { host_call(lent(), "counted", {}, [calls] { ++*calls; }); }};
    for (int i = 0; i != 5; ++i) foreign::launch(made.executable, theirs());
    foreign::synchronize(theirs());
    EXPECT_EQ(*calls, 5);
    EXPECT_GT(calls.use_count(), 1);
  }
  // CUDA tells of the end on a thread of its own; what it held goes when the door is used again.
  for (int i = 0; i != 1000 && calls.use_count() > 1; ++i) {
    const mixed_graph next{gpu(), theirs(), x, {}};
  }
  EXPECT_EQ(calls.use_count(), 1);
}

TEST_F(borrowed, things_are_left_to_their_owners_when_the_device_closes) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  reports said;
  {
    const device second = device{open_cuda(0)};
    foreign::borrow_stream(second, theirs());
  }
  EXPECT_TRUE(reports::taken().empty());
  foreign::add(theirs(), x.all().data(), x.size(), 1.0f);
  foreign::synchronize(theirs());
}

}  // namespace
}  // namespace reprise::test
