// Graphs and executables on a card.
#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_graph = on_a_gpu;

TEST_F(cuda_graph, does_nothing_while_it_is_captured_and_its_work_at_each_launch) {
  const buffer<float> x = floats(1000, 0.0f);
  const graph made = capture(s(), [&](stream_ref c) {
    add_to(c, x, 1.0f);
    add_to(c, x, 2.0f);
  });
  EXPECT_EQ(made.nodes(), 2u);
  EXPECT_EQ(read_back(s(), x.all()).front(), 0.0f);
  const executable step = made.instantiate(s());
  for (int i = 0; i != 5; ++i) step.launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(1000, 15.0f));
}

TEST_F(cuda_graph, keeps_its_own_copy_of_a_kernels_arguments) {
  const buffer<float> x = floats(10, 0.0f);
  const graph made = capture(s(), [&](stream_ref c) {
    add_arguments gone{x.all().data(), x.size(), 4.0f};
    enqueue_kernel(c, "add", &add, gone);
    gone = {nullptr, 0, 0.0f};
  });
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 4.0f));
}

TEST_F(cuda_graph, of_nothing_is_valid_and_launches_to_no_effect) {
  const graph made = capture(s(), [](stream_ref) {});
  EXPECT_EQ(made.nodes(), 0u);
  const executable step = made.instantiate(s());
  step.launch(s());
  s().synchronize();
  expect_usable(s());
}

TEST_F(cuda_graph, gives_executables_that_outlive_it_and_each_other) {
  const buffer<float> x = floats(10, 0.0f);
  std::optional<graph> made{capture(s(), [&](stream_ref c) { add_to(c, x, 1.0f); })};
  std::optional<executable> first{made->instantiate(s())};
  const executable second = made->instantiate(s());
  made.reset();
  first->launch(s());
  s().synchronize();
  first.reset();
  second.launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 2.0f));
}

TEST_F(cuda_graph, is_launched_on_other_streams_than_it_was_captured_and_uploaded_on) {
  const buffer<float> x = floats(10, 0.0f);
  s().synchronize();
  stream other{gpu()};
  const executable step = capture(s(), [&](stream_ref c) { add_to(c, x, 1.0f); }).instantiate(s());
  step.launch(other);
  EXPECT_EQ(read_back(other, x.all()), std::vector<float>(10, 1.0f));
}

TEST_F(cuda_graph, is_launched_from_a_thread_that_never_called_cuda) {
  const buffer<float> x = floats(10, 0.0f);
  const executable step = capture(s(), [&](stream_ref c) { add_to(c, x, 1.0f); }).instantiate(s());
  std::thread{[&] { step.launch(s()); }}.join();
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 1.0f));
}

TEST_F(cuda_graph, orders_a_fork_and_its_join) {
  const buffer<float> x = floats(1000, 1.0f);
  const buffer<float> y = floats(1000, 1.0f);
  stream side{gpu()};
  event forked{gpu()};
  event joined{gpu()};
  const graph made = capture(s(), [&](stream_ref c) {
    add_to(c, x, 1.0f);
    forked.record(c);
    forked.wait(side);
    EXPECT_TRUE(static_cast<stream_ref>(side).capturing());
    add_to(side, y, 5.0f);
    add_to(c, x, 1.0f);
    joined.record(side);
    joined.wait(c);
    copy(c, read<float>{y}, write<float>{x});
  });
  EXPECT_FALSE(static_cast<stream_ref>(side).capturing());
  EXPECT_EQ(made.nodes(), 4u);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(1000, 6.0f));
  expect_usable(side);
}

TEST_F(cuda_graph, may_join_a_stream_through_another) {
  const buffer<float> x = floats(10, 0.0f);
  stream a{gpu()};
  stream b{gpu()};
  const graph made = capture(s(), [&](stream_ref c) {
    event e1{gpu()}, e2{gpu()}, e3{gpu()}, e4{gpu()};  // dying here: put off until the end
    e1.record(c);
    e1.wait(a);
    add_to(a, x, 1.0f);
    e2.record(a);
    e2.wait(b);
    add_to(b, x, 1.0f);
    e3.record(b);
    e3.wait(a);
    add_to(a, x, 1.0f);
    e4.record(a);
    e4.wait(c);
  });
  EXPECT_EQ(made.nodes(), 3u);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 3.0f));
}

TEST_F(cuda_graph, may_have_a_branch_whose_stream_lived_in_the_body_only) {
  const buffer<float> x = floats(10, 0.0f);
  reports said;
  const graph made = capture(s(), [&](stream_ref c) {
    stream side{gpu()};
    event forked{gpu()};
    event joined{gpu()};
    forked.record(c);
    forked.wait(side);
    add_to(side, x, 1.0f);
    joined.record(side);
    joined.wait(c);
  });
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(10, 1.0f));
  EXPECT_TRUE(reports::texts().empty());
}

TEST_F(cuda_graph, leaks_no_memory_over_many_captures) {
  const buffer<float> x = floats(10, 0.0f);
  const auto cycle = [&] {
    const executable step =
        capture(s(), [&](stream_ref c) { add_to(c, x, 1.0f); }).instantiate(s());
    step.launch(s());
    s().synchronize();
  };
  for (int i = 0; i != 1000; ++i) cycle();
  const std::size_t before = gpu().memory().free;
  for (int i = 0; i != 2000; ++i) cycle();
  EXPECT_LE(before, gpu().memory().free + (std::size_t{2} << 20));
}

}  // namespace
}  // namespace reprise::test
