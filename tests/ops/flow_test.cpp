#include "reprise/ops/flow.hpp"

#include "tests/ops/bench.hpp"

namespace reprise::test {
namespace {

using floats = std::vector<float>;

const std::vector<std::size_t> sizes{0, 1, 7, 784, 40001};

floats guided(op_bench& bench, const floats& with, const floats& without, float scale) {
  const auto c = bench.put(with);
  const auto u = bench.put(without);
  const auto s = bench.put(floats{scale});
  const auto to = bench.room<float>(with.size());
  launch(bench.on(), guide, read<float>{c.span()}, read<float>{u.span()}, read<float>{s.span()},
         write<float>{to.span()});
  return bench.take(to);
}

floats drifted(op_bench& bench, const floats& data, const floats& x, float of_data, float of_x) {
  const auto p = bench.put(data);
  const auto xs = bench.put(x);
  const auto factors = bench.put(floats{of_data, of_x});
  const auto to = bench.room<float>(data.size());
  launch(bench.on(), flow_drift, read<float>{p.span()}, read<float>{xs.span()},
         read<float>{factors.span()}, write<float>{to.span()});
  return bench.take(to);
}

floats along_euler(op_bench& bench, const floats& x, const floats& drift, float dt) {
  const auto xs = bench.put(x);
  const auto v = bench.put(drift);
  const auto by = bench.put(floats{dt});
  launch(bench.on(), euler_step, inout<float>{xs.span()}, read<float>{v.span()},
         read<float>{by.span()});
  return bench.take(xs);
}

floats along_sde(op_bench& bench, const floats& x, const floats& drift, const floats& noise,
                 float dt, float sigma) {
  const auto xs = bench.put(x);
  const auto v = bench.put(drift);
  const auto n = bench.put(noise);
  const auto by = bench.put(floats{dt});
  const auto deviation = bench.put(floats{sigma});
  launch(bench.on(), sde_step, inout<float>{xs.span()}, read<float>{v.span()},
         read<float>{n.span()}, read<float>{by.span()}, read<float>{deviation.span()});
  return bench.take(xs);
}

// Each formula in f32, an operation after the other: what every device gives, bit for bit.
template <class F>
floats each(std::size_t size, F&& f) {
  floats out;
  for (std::size_t i = 0; i < size; ++i) out.push_back(f(i));
  return out;
}

class flow_op : public op_on_device {};
INSTANTIATE_TEST_SUITE_P(devices, flow_op, testing::ValuesIn(plain_devices()), device_case);

TEST_P(flow_op, guides_by_the_scale_in_device_memory) {
  for (const std::size_t size : sizes) {
    const auto c = random_values<float>(size, 1);
    const auto u = random_values<float>(size, 2);
    for (const float s : {0.0F, 1.0F, 2.5F}) {
      expect_same_bits(guided(bench(), c, u, s), each(size, [&](std::size_t i) {
                         const float apart = c[i] - u[i];
                         const float moved = s * apart;
                         return u[i] + moved;
                       }));
    }
  }
}

TEST_P(flow_op, guidance_may_overwrite_a_branch) {
  const auto c = random_values<float>(784, 3);
  const auto u = random_values<float>(784, 4);
  const auto cs = bench().put(c);
  const auto us = bench().put(u);
  const auto s = bench().put(floats{3.0F});
  launch(bench().on(), guide, read<float>{cs.span()}, read<float>{us.span()}, read<float>{s.span()},
         write<float>{cs.span()});
  expect_same_bits(bench().take(cs), guided(bench(), c, u, 3.0F));
}

TEST_P(flow_op, the_drift_of_a_straight_path_is_its_velocity) {
  for (const std::size_t size : sizes) {
    const auto p = random_values<float>(size, 5);
    const auto x = random_values<float>(size, 6);
    const float t = 0.75F;
    const auto got = drifted(bench(), p, x, 1 / (1 - t), -1 / (1 - t));
    expect_same_bits(got, each(size, [&](std::size_t i) {
                       const float of_data = 4 * p[i];
                       const float of_x = -4 * x[i];
                       return of_data + of_x;
                     }));
  }
}

TEST_P(flow_op, euler_goes_along_the_drift_by_dt) {
  for (const std::size_t size : sizes) {
    const auto x = random_values<float>(size, 7);
    const auto v = random_values<float>(size, 8);
    expect_same_bits(along_euler(bench(), x, v, 0.05F), each(size, [&](std::size_t i) {
                       const float step = 0.05F * v[i];
                       return x[i] + step;
                     }));
  }
}

TEST_P(flow_op, a_stochastic_step_adds_its_noise_to_that) {
  for (const std::size_t size : sizes) {
    const auto x = random_values<float>(size, 9);
    const auto v = random_values<float>(size, 10);
    const auto n = random_values<float>(size, 11);
    expect_same_bits(along_sde(bench(), x, v, n, 0.05F, 0.3F), each(size, [&](std::size_t i) {
                       const float step = 0.05F * v[i];
                       const float there = x[i] + step;
                       const float shake = 0.3F * n[i];
                       return there + shake;
                     }));
    expect_same_bits(along_sde(bench(), x, v, n, 0.05F, 0.0F), along_euler(bench(), x, v, 0.05F));
  }
}

TEST_P(flow_op, each_element_has_the_bits_it_has_alone) {
  const auto x = random_values<float>(131, 12);
  const auto v = random_values<float>(131, 13);
  const auto n = random_values<float>(131, 14);
  const auto together = along_sde(bench(), x, v, n, 0.1F, 0.7F);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_same_bits(along_sde(bench(), {x[i]}, {v[i]}, {n[i]}, 0.1F, 0.7F), {together[i]});
  }
}

TEST_P(flow_op, refuses_sizes_that_do_not_fit) {
  const auto a = bench().put(floats(8));
  const auto first = [&](std::size_t count) { return read<float>{a.span().subview(0, count)}; };
  const auto to = [&](std::size_t count) { return write<float>{a.span().subview(0, count)}; };
  const auto at = [&](std::size_t count) { return inout<float>{a.span().subview(0, count)}; };
  EXPECT_THROW(launch(bench().on(), guide, first(8), first(7), first(1), to(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), guide, first(8), first(8), first(2), to(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), guide, first(8), first(8), first(1), to(7)), usage_error);
  EXPECT_THROW(launch(bench().on(), flow_drift, first(8), first(7), first(2), to(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), flow_drift, first(8), first(8), first(1), to(8)), usage_error);
  EXPECT_THROW(launch(bench().on(), euler_step, at(8), first(7), first(1)), usage_error);
  EXPECT_THROW(launch(bench().on(), euler_step, at(8), first(8), first(0)), usage_error);
  EXPECT_THROW(launch(bench().on(), sde_step, at(8), first(8), first(7), first(1), first(1)),
               usage_error);
  EXPECT_THROW(launch(bench().on(), sde_step, at(8), first(8), first(8), first(1), first(2)),
               usage_error);
}

TEST(flow, the_cuts_between_threads_change_nothing) {
  auto x = random_values<float>(5001, 15);
  const auto v = random_values<float>(5001, 16);
  op_bench bench{"cpu", 1};
  const auto expected = along_euler(bench, x, v, 0.25F);
  const float dt = 0.25F;
  cpu_call call{{}, odd_pieces()};
  ops::euler_step_cpu(call, inout<float>{view{x.data(), x.size()}},
                      read<float>{view{v.data(), v.size()}}, read<float>{view{&dt, 1}});
  expect_same_bits(x, expected);
}

}  // namespace
}  // namespace reprise::test
