#include "reprise/ops/swiglu.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

const std::vector<std::size_t> sizes = {0, 1, 7, 8, 9, 100, 2048, 2056, 3 * 4864, 100001};

template <class A>
std::vector<A> gated(op_bench& bench, const std::vector<A>& gate, const std::vector<A>& up,
                     place where = place::aligned) {
  const auto gates = bench.put(gate, where);
  const auto ups = bench.put(up, where);
  const auto to = bench.template room<A>(gate.size(), where);
  launch(bench.on(), swiglu<A>, read<A>{gates.span()}, read<A>{ups.span()}, write<A>{to.span()});
  return bench.take(to);
}

template <class A>
std::vector<double> reference(const std::vector<A>& gate, const std::vector<A>& up) {
  std::vector<double> out;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double g = widen(gate[i]);
    out.push_back(g / (1 + std::exp(-g)) * widen(up[i]));
  }
  return out;
}

template <class F>
void each_activation(F&& check) {
  check(types<float, float>{});
  check(types<bf16, bf16>{});
}

class swiglu_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, swiglu_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(swiglu_op, agrees_with_a_double_reference_at_every_size) {
  each_activation([&]<class A>(types<A, A>) {
    for (const std::size_t size : sizes) {
      SCOPED_TRACE(size);
      const auto gate = random_values<A>(size, 1, 20.0f);
      const auto up = random_values<A>(size, 2);
      const auto got = gated(bench(), gate, up);
      expect_near(got, reference(gate, up), 1e-30);
      expect_same_bits(gated(bench(), gate, up, place::shifted), got);
    }
  });
}

TEST_P(swiglu_op, each_element_has_the_bits_it_has_alone) {
  each_activation([&]<class A>(types<A, A>) {
    const auto gate = random_values<A>(131, 3, 10.0f);
    const auto up = random_values<A>(131, 4);
    const auto together = gated(bench(), gate, up);
    for (std::size_t i = 0; i < gate.size(); ++i) {
      expect_same_bits(gated<A>(bench(), {gate[i]}, {up[i]}), {together[i]});
    }
  });
}

TEST_P(swiglu_op, saturates_where_the_exponential_does) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto out =
      gated<float>(bench(), {-1000.0f, 1000.0f, infinity, 0.0f, std::nanf("")}, {1, 1, 1, 1, 1});
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[1], 1000.0f);
  EXPECT_EQ(out[2], infinity);
  EXPECT_EQ(out[3], 0.0f);
  EXPECT_TRUE(std::isnan(out[4]));
}

TEST_P(swiglu_op, works_in_place) {
  const auto gate = random_values<bf16>(5000, 5);
  const auto up = random_values<bf16>(5000, 6);
  const auto gates = bench().put(gate);
  const auto ups = bench().put(up);
  launch(bench().on(), swiglu<bf16>, read<bf16>{gates.span()}, read<bf16>{ups.span()},
         write<bf16>{gates.span()});
  expect_same_bits(bench().take(gates), gated(bench(), gate, up));
}

TEST_P(swiglu_op, refuses_sizes_that_differ) {
  const auto a = bench().put(std::vector<float>(8));
  const auto run = [&](std::size_t gate, std::size_t up, std::size_t out) {
    launch(bench().on(), swiglu<float>, read<float>{a.span().subview(0, gate)},
           read<float>{a.span().subview(0, up)}, write<float>{a.span().subview(0, out)});
  };
  EXPECT_NO_THROW(run(8, 8, 8));
  EXPECT_THROW(run(8, 7, 8), usage_error);
  EXPECT_THROW(run(8, 8, 7), usage_error);
}

TEST(swiglu, the_cuts_between_threads_change_nothing) {
  const auto gate = random_values<float>(20001, 7);
  const auto up = random_values<float>(20001, 8);
  std::vector<float> out(gate.size());
  cpu_call call{{}, odd_pieces()};
  ops::swiglu_cpu(call, read<float>{view{gate.data(), gate.size()}},
                  read<float>{view{up.data(), up.size()}},
                  write<float>{view{out.data(), out.size()}});
  op_bench bench{"cpu", 1};
  expect_same_bits(out, gated(bench, gate, up));
}

TEST(swiglu, cuda_gives_the_bits_of_the_cpu) {
  if (!gpu_or_skip()) GTEST_SKIP() << "no GPU answers";
  op_bench cpu{"cpu"};
  op_bench cuda{automatic_device()};
  each_activation([&]<class A>(types<A, A>) {
    for (const float scale : {1e-6f, 1.0f, 30.0f, 100.0f}) {
      const auto gate = random_values<A>(1 << 20, 9, scale);
      const auto up = random_values<A>(1 << 20, 10);
      expect_same_bits(gated(cuda, gate, up), gated(cpu, gate, up));
    }
  });
}

}  // namespace
}  // namespace reprise::test
