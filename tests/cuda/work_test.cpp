// Host calls and external work: who owns what they hold, and when it runs.
#include <mutex>

#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_host_call = on_a_gpu;
using cuda_external = on_a_gpu;

TEST_F(cuda_host_call, runs_in_stream_order) {
  pinned<float> out{gpu(), 1};
  out[0] = 0.0f;
  const buffer<float> x = floats(1, 5.0f);
  float seen = 0.0f;
  copy(s(), read<float>{x}, write<float>{out.all()});
  host_call(s(), "look", {}, [&] { seen = out[0]; });
  s().synchronize();
  EXPECT_EQ(seen, 5.0f);
}

TEST_F(cuda_host_call, returns_before_the_function_has_run_and_keeps_its_own_copy) {
  auto state = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = state;
  std::atomic<int> ran{0};
  {
    held_stream held{gpu(), s()};
    host_call(s(), "count", {}, [&ran, kept = std::move(state)] { ran += *kept; });
    EXPECT_EQ(ran, 0);
    EXPECT_FALSE(watch.expired());
  }
  s().synchronize();
  EXPECT_EQ(ran, 1);
  EXPECT_TRUE(watch.expired());
}

TEST_F(cuda_host_call, may_hold_what_calls_cuda_when_it_dies) {
  auto inner = std::make_shared<event>(gpu());
  inner->record(s());
  reports said;
  host_call(s(), "hold an event", {}, [kept = std::move(inner)] { (void)kept; });
  s().synchronize();
  EXPECT_TRUE(reports::texts().empty());
  EXPECT_EQ(error_slot(), 0);
}

TEST_F(cuda_host_call, runs_at_each_replay_in_order_and_frees_its_state_once) {
  struct counted {
    explicit counted(std::atomic<int>& c) : deaths{&c} {}
    ~counted() { ++*deaths; }
    std::atomic<int>* deaths;
  };
  std::atomic<int> deaths{0};
  std::vector<int> order;
  int next = 0;
  {
    std::optional<executable> step;
    {
      const graph made = capture(s(), [&](stream_ref c) {
        host_call(c, "first", {}, [&order, &next, kept = std::make_shared<counted>(deaths)] {
          order.push_back(2 * next);
        });
        host_call(c, "second", {}, [&order, &next] { order.push_back(2 * next++ + 1); });
      });
      EXPECT_EQ(made.nodes(), 2u);
      step.emplace(made.instantiate(s()));
    }
    EXPECT_EQ(deaths, 0);  // the graph is gone, the executable still calls it
    for (int i = 0; i != 50; ++i) step->launch(s());
    s().synchronize();
    EXPECT_EQ(deaths, 0);
  }
  EXPECT_EQ(deaths, 1);
  std::vector<int> expected(100);
  for (int i = 0; i != 100; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(order, expected);
}

TEST_F(cuda_host_call, of_an_abandoned_capture_never_runs_and_is_freed) {
  auto state = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = state;
  int ran = 0;
  EXPECT_THROW(capture(s(),
                       [&](stream_ref c) {
                         host_call(c, "never", {}, [&ran, kept = std::move(state)] { ++ran; });
                         throw usage_error{"the body gives up"};
                       }),
               usage_error);
  s().synchronize();
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(watch.expired());
}

TEST_F(cuda_host_call, that_throws_is_reported_and_the_stream_goes_on) {
  reports said;
  int after = 0;
  host_call(s(), "thrower", {}, [] { throw std::runtime_error{"no such luck"}; });
  host_call(s(), "after", {}, [&] { after = 1; });
  s().synchronize();
  EXPECT_EQ(after, 1);
  ASSERT_EQ(reports::texts().size(), 1u);
  EXPECT_NE(reports::texts()[0].find("thrower"), std::string::npos);
  EXPECT_NE(reports::texts()[0].find("no such luck"), std::string::npos);
}

TEST_F(cuda_host_call, pending_on_a_stream_that_dies_still_runs) {
  std::atomic<int> ran{0};
  {
    stream dying{gpu()};
    for (int i = 0; i != 10; ++i) host_call(dying, "count", {}, [&] { ++ran; });
  }
  EXPECT_EQ(ran, 10);
}

TEST_F(cuda_external, gets_the_native_stream_eagerly_and_in_a_capture) {
  const buffer<float> x = floats(1000, 1.0f);
  const auto step = [&](stream_ref on) {
    external(on, "someone's kernel", {{x.all().data(), x.all().bytes(), true}},
             [&](void* native) { add_native(native, x.all().data(), x.size(), 1.0f); });
  };
  step(s());
  const graph made = capture(s(), step);
  EXPECT_EQ(made.nodes(), 1u);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(1000, 3.0f));
}

TEST_F(cuda_external, that_breaks_a_capture_is_named) {
  const std::string text = message_of<capture_error>([&] {
    capture(s(), [&](stream_ref c) {
      external(c, "an impatient library", {}, [](void* native) { synchronize_native(native); });
    });
  });
  EXPECT_NE(text.find("an impatient library"), std::string::npos) << text;
  expect_usable(s());
}

TEST_F(cuda_external, passes_on_what_it_throws) {
  EXPECT_THROW(external(s(), "thrower", {}, [](void*) { throw std::runtime_error{"mine"}; }),
               std::runtime_error);
  expect_usable(s());
}

}  // namespace
}  // namespace reprise::test
