// The device itself, host calls on the driver's thread, and kernels of someone else.
#include "gpu.hpp"

namespace reprise::test {
namespace {

using cuda_card = on_a_gpu;
using cuda_host_call = on_a_gpu;
using cuda_external = on_a_gpu;

TEST_F(cuda_card, says_what_it_is) {
  const device_traits& traits = gpu().traits();
  EXPECT_EQ(traits.name.rfind("cuda:", 0), 0u);
  EXPECT_EQ(traits.bodies, device_kind::cuda);
  EXPECT_EQ(traits.threads, 1);
  EXPECT_FALSE(traits.model.empty());
  EXPECT_FALSE(traits.arch_chain.empty());
  EXPECT_GT(gpu().memory().total, std::size_t{1} << 30);
}

TEST_F(cuda_host_call, that_throws_is_reported_and_the_stream_goes_on) {
  const reports said;
  int after = 0;
  host_call(s(), "thrower", {}, [] { throw std::runtime_error{"no such luck"}; });
  host_call(s(), "after", {}, [&] { after = 1; });
  s().synchronize();
  EXPECT_EQ(after, 1);
  const std::vector<std::string> heard = reports::taken();
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_TRUE(has(heard[0], "thrower")) << heard[0];
  EXPECT_TRUE(has(heard[0], "no such luck")) << heard[0];
}

TEST_F(cuda_external, gets_the_native_stream_eagerly_and_in_a_capture) {
  const buffer<float> x = floats(1000, 1.0f);
  const auto step = [&](stream_ref on) {
    external(on, "someone's kernel", {{x.all().data(), x.all().bytes(), true}},
             [&](void* native) { add_native(native, x.all().data(), x.size(), 1.0f); });
  };
  step(s());
  const graph made = capture(s(), step);
  EXPECT_EQ(made.size(), 1u);
  made.instantiate(s()).launch(s());
  EXPECT_EQ(read_back(s(), x.all()), std::vector<float>(1000, 3.0f));
}

}  // namespace
}  // namespace reprise::test
