// A call or more of every built-in kernel, on host memory, for tests of all of them. A runner has
//
//   template <class... A> void run(const kernel<void(A...)>&, A... arguments);
//   std::span<std::byte> beside;   // bytes that a body changes and no view names (switch_nodes)
//
// Sizes are such that vectors, tails and rows that are no rows all occur.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "reprise/grad/bring.hpp"
#include "reprise/ops/argmax.hpp"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/bias_add.hpp"
#include "reprise/ops/embedding.hpp"
#include "reprise/ops/flow.hpp"
#include "reprise/ops/gelu.hpp"
#include "reprise/ops/layer_norm.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/matmul.hpp"
#include "reprise/ops/narrowing.hpp"
#include "reprise/ops/put_gradient.hpp"
#include "reprise/ops/random.hpp"
#include "reprise/ops/random_uniform.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/ops/rope.hpp"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/swiglu.hpp"
#include "reprise/ops/switch_nodes.hpp"
#include "reprise/ops/timestep_embedding.hpp"
#include "reprise/replay/stage_inputs.hpp"
#include "reprise/tap/bring_plan.hpp"
#include "reprise/tap/move_span.hpp"
#include "reprise/tap/publish_taken.hpp"
#include "reprise/tap/take_rows.hpp"
#include "tests/ops/bench.hpp"
#include "tests/ops/every_training_kernel.hpp"
#include "tests/sdm/every_sdm_kernel.hpp"

namespace reprise::test {

template <class A, class W, class Runner>
void run_matmuls(Runner& with) {
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {1, 19, 37}, {2, 5, 16}, {7, 33, 50}, {70, 3, 20}}) {
    const auto x = random_values<A>(static_cast<std::size_t>(m * k), 1);
    const auto w = random_values<W>(static_cast<std::size_t>(n * k), 2);
    auto y = random_values<A>(static_cast<std::size_t>(m * n), 3);
    with.run(matmul<A, W>, read<A>{all(x)}, read<W>{all(w)}, write<A>{all(y)}, n, k);
    with.run(matmul_add<A, W>, read<A>{all(x)}, read<W>{all(w)}, inout<A>{all(y)}, n, k);
  }
}

// The rule is `add`: the one under which a gradient is both read and written.
template <class A, class Runner>
void run_linears(Runner& with) {
  const std::vector<std::int32_t> add{static_cast<std::int32_t>(gradient_rule::add)};
  for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
           {1, 1, 1}, {2, 19, 37}, {67, 5, 16}, {130, 70, 65}}) {
    for (const auto precision : {matrix_precision::full, matrix_precision::tf32}) {
      const auto x = random_values<A>(static_cast<std::size_t>(m * k), 22);
      const auto w = random_values<A>(static_cast<std::size_t>(n * k), 23);
      const auto bias = random_values<float>(static_cast<std::size_t>(n), 24);
      const auto dy = random_values<A>(static_cast<std::size_t>(m * n), 25);
      std::vector<float> y(static_cast<std::size_t>(m * n), 9.0F);
      std::vector<float> dx(x.size(), 9.0F);
      auto dw = random_values<float>(w.size(), 26);
      with.run(linear<A>, read<A>{all(x)}, read<A>{all(w)}, read<float>{all(bias)},
               write<float>{all(y)}, n, k, precision);
      with.run(linear_input_grad<A>, read<A>{all(dy)}, read<A>{all(w)}, write<float>{all(dx)}, n, k,
               precision);
      with.run(linear_weight_grad<A>, read<A>{all(dy)}, read<A>{all(x)}, inout<float>{all(dw)},
               read<std::int32_t>{all(add)}, n, k, precision);
    }
  }
}

template <class Runner>
void run_gradients(Runner& with) {
  const std::vector<std::int32_t> add{static_cast<std::int32_t>(gradient_rule::add)};
  for (const auto precision : {matrix_precision::full, matrix_precision::tf32}) {
    const auto dy = random_values<float>(70U * 33U, 46);
    const auto x = random_values<float>(70U * 18U, 47);
    auto dw = random_values<float>(33U * 18U, 48);
    auto db = random_values<float>(33U, 49);
    const std::vector<std::int32_t> for_bias = add;
    with.run(linear_parameter_grads, read<float>{all(dy)}, read<float>{all(x)},
             inout<float>{all(dw)}, inout<float>{all(db)}, read<std::int32_t>{all(add)},
             read<std::int32_t>{all(for_bias)}, std::int64_t{33}, std::int64_t{18}, precision);
  }
  for (const auto& [m, n] : std::vector<std::array<std::size_t, 2>>{{1, 1}, {130, 70}}) {
    const auto dy = random_values<float>(m * n, 27);
    auto db = random_values<float>(n, 28);
    with.run(column_sum, read<float>{all(dy)}, inout<float>{all(db)}, read<std::int32_t>{all(add)},
             static_cast<std::int64_t>(n));
    auto grad = random_values<float>(m * n, 29);
    with.run(put_gradient, read<float>{all(dy)}, inout<float>{all(grad)}, gradient_rule::add);
    std::vector<bf16> narrowed(m * n, narrow<bf16>(9.0F));
    with.run(narrow_to_bf16, read<float>{all(dy)}, write<bf16>{all(narrowed)});
  }
}

template <class A, class W, class Runner>
void run_row_ops(Runner& with) {
  for (const std::size_t width : {1U, 7U, 192U, 4100U}) {
    const auto x = random_values<A>(3 * width, 4);
    const auto gain = random_values<W>(width, 5);
    std::vector<A> y(3 * width);
    with.run(rms_norm<A, W>, read<A>{all(x)}, read<W>{all(gain)}, write<A>{all(y)},
             static_cast<std::int64_t>(width), 1e-5F);
    const auto table = random_values<W>(11 * width, 6);
    const tokens chosen{10, -1, 3, 11};  // two of them are no tokens
    std::vector<A> rows(4 * width, narrow<A>(9.0F));
    with.run(embedding<A, W>, read<std::int32_t>{all(chosen)}, read<W>{all(table)},
             write<A>{all(rows)}, static_cast<std::int64_t>(width));
  }
}

template <class A, class C, class Runner>
void run_attention(Runner& with) {
  for (const attention_shape& shape :
       std::vector<attention_shape>{{6, 2, 32, 70}, {1, 1, 8, 5}, {4, 4, 40, 130}}) {
    const tokens slots{0, 1, 1, 7, 0};  // one is padding
    const auto last = static_cast<std::int32_t>(shape.capacity - 1);
    const tokens positions{0, last, last / 2, 0, last - 1};
    const auto q =
        random_values<A>(slots.size() * static_cast<std::size_t>(shape.heads * shape.head_dim), 7);
    const auto k = random_values<A>(
        slots.size() * static_cast<std::size_t>(shape.kv_heads * shape.head_dim), 8);
    const auto v = random_values<A>(k.size(), 9);
    const auto cache =
        static_cast<std::size_t>(2 * shape.kv_heads * shape.capacity * shape.head_dim);
    auto keys = random_values<C>(cache, 10);
    auto values = random_values<C>(cache, 11);
    std::vector<A> out(q.size(), narrow<A>(9.0F));
    with.run(cache_append<A, C>, read<A>{all(k)}, read<A>{all(v)}, read<std::int32_t>{all(slots)},
             read<std::int32_t>{all(positions)}, write<C>{all(keys)}, write<C>{all(values)}, shape);
    with.run(attention<A, C>, read<A>{all(q)}, read<C>{view<C>{all(keys)}},
             read<C>{view<C>{all(values)}}, read<std::int32_t>{all(slots)},
             read<std::int32_t>{all(positions)}, write<A>{all(out)}, shape);
  }
}

template <class A, class Runner>
void run_elementwise(Runner& with) {
  for (const std::size_t count : {1U, 31U, 1000U}) {
    const auto gate = random_values<A>(count, 12, 8.0F);
    const auto up = random_values<A>(count, 13);
    std::vector<A> out(count);
    with.run(swiglu<A>, read<A>{all(gate)}, read<A>{all(up)}, write<A>{all(out)});
    with.run(random_normal<A>, write<A>{all(out)}, std::uint64_t{9}, std::uint64_t{3}, 0.5F);
  }
  for (const std::int64_t head_dim : {8, 32, 320}) {
    const tokens positions{0, 1, 100000};
    auto x = random_values<A>(static_cast<std::size_t>(3 * 2 * head_dim), 14);
    const auto frequencies = rope_inverse_frequencies(head_dim, 10000.0);
    with.run(rope<A>, inout<A>{all(x)}, read<std::int32_t>{all(positions)},
             read<float>{all(frequencies)}, 2, head_dim);
  }
}

template <class Runner>
void run_denoiser_ops(Runner& with) {
  for (const std::size_t width : {1U, 33U, 256U}) {
    const auto x = random_values<float>(3 * width, 16);
    const auto gain = random_values<float>(width, 17);
    const auto bias = random_values<float>(width, 18);
    std::vector<float> y(3 * width, 9.0F);
    with.run(layer_norm, read<float>{all(x)}, read<float>{all(gain)}, read<float>{all(bias)},
             write<float>{all(y)}, static_cast<std::int64_t>(width), 1e-5F);
    with.run(bias_add, read<float>{all(x)}, read<float>{all(bias)}, write<float>{all(y)});
    with.run(gelu, read<float>{all(x)}, write<float>{all(y)});
  }
  const std::vector<float> times{0.0F, 0.3F, 1.0F};
  for (const std::int64_t width : {2, 64}) {
    std::vector<float> out(3 * static_cast<std::size_t>(width), 9.0F);
    with.run(timestep_embedding, read<float>{all(times)}, write<float>{all(out)}, width);
  }
  for (const std::size_t count : {1U, 1000U}) {
    auto x = random_values<float>(count, 19);
    const auto v = random_values<float>(count, 20);
    const auto n = random_values<float>(count, 21);
    const std::vector<float> one{0.5F};
    const std::vector<float> two{4.0F, -3.0F};
    std::vector<float> out(count, 9.0F);
    with.run(guide, read<float>{all(v)}, read<float>{all(n)}, read<float>{all(one)},
             write<float>{all(out)});
    with.run(flow_drift, read<float>{all(v)}, read<float>{all(n)}, read<float>{all(two)},
             write<float>{all(out)});
    with.run(euler_step, inout<float>{all(x)}, read<float>{all(v)}, read<float>{all(one)});
    with.run(sde_step, inout<float>{all(x)}, read<float>{all(v)}, read<float>{all(n)},
             read<float>{all(one)}, read<float>{all(one)});
  }
}

template <class Runner>
void run_choices(Runner& with) {
  for (const std::size_t width : {2U, 255U, 5000U}) {
    const auto logits = random_values<float>(3 * width, 15, 6.0F);
    tokens out(3, -1);
    with.run(argmax, read<float>{all(logits)}, write<std::int32_t>{all(out)},
             static_cast<std::int64_t>(width));
    out.assign(3, -1);
    const std::vector<float> temperatures{0.7F, 1.0F, 0.0F};
    const std::vector<float> top_ps{0.9F, 1.0F, 0.5F};
    const std::vector<std::uint64_t> seeds{5, 6, 7};
    const std::vector<std::uint64_t> counters{1, 2, 3};
    with.run(sample, read<float>{all(logits)}, read<float>{all(temperatures)},
             read<float>{all(top_ps)}, read<std::uint64_t>{all(seeds)},
             read<std::uint64_t>{all(counters)}, write<std::int32_t>{all(out)},
             static_cast<std::int64_t>(width));
  }
  const std::vector<std::uint64_t> base{42, 100};
  std::vector<float> uniform(1003, -1.0F);
  with.run(random_uniform, read<std::uint64_t>{all(base)}, write<float>{all(uniform)},
           std::uint64_t{7});
}

template <class Runner>
void run_switches(Runner& with) {
  std::array<std::uint8_t, 3> enabled{0, 1, 0};
  std::vector<std::uint64_t> nodes;
  for (const auto& each : enabled) nodes.push_back(reinterpret_cast<std::uintptr_t>(&each));
  const std::vector<std::uint8_t> on{1, 0, 200};
  with.beside = std::as_writable_bytes(std::span{enabled});
  with.run(switch_nodes, read<std::uint64_t>{all(nodes)}, read<std::uint8_t>{all(on)});
  with.beside = {};
}

template <class Runner>
void run_staging(Runner& with) {
  constexpr std::size_t slot_bytes = stage_header_bytes(96) + 96;
  std::vector<std::uint8_t> ring(2 * slot_bytes);
  for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = static_cast<std::uint8_t>(i * 31);
  const std::uint64_t there = 0b101;  // the second of three segments is not
  std::memcpy(ring.data() + slot_bytes, &there, sizeof there);
  std::vector<std::uint8_t> block(96, 0xee);
  std::vector<std::uint64_t> words{3, 0, 0, 20, 48, 4, 80, 5};
  std::vector<std::uint64_t> consumed{3};
  with.run(stage_inputs, read<std::uint8_t>{view<std::uint8_t>{all(ring)}},
           write<std::uint8_t>{all(block)}, inout<std::uint64_t>{all(words)},
           write<std::uint64_t>{all(consumed)}, slot_bytes, std::uint64_t{2}, std::uint64_t{3});
}

template <class Runner>
void run_bringing(Runner& with) {
  for (const std::size_t bytes : {1U, 16U, 1000U}) {
    const std::vector<std::uint8_t> from(bytes, 7);
    std::vector<std::uint8_t> to(bytes);
    with.run(bring, read<std::uint8_t>{all(from)}, write<std::uint8_t>{all(to)});
  }
}

// Two rows by the limit and one by the table, across the end of the ring.
template <class Runner>
void run_publishing(Runner& with) {
  std::vector<std::uint8_t> source(80);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i * 29);
  const std::vector<std::int64_t> limit{2};
  const std::vector<std::uint64_t> plan{112, 128, 64, 1, 3, 9, 8, 0, 2, 0, 1, 3, 1};
  std::vector<std::uint8_t> ring(128, 0xee);
  std::vector<std::uint64_t> taken{0};
  with.run(take_rows, read<std::uint8_t>{all(source)}, read<std::int64_t>{all(limit)},
           read<std::uint64_t>{all(plan)}, write<std::uint8_t>{all(ring)},
           write<std::uint64_t>{all(taken)}, std::uint64_t{0}, std::uint64_t{5}, std::uint64_t{20});
  std::vector<std::uint64_t> publications(2);
  taken[0] = publication::word(3, 5, 60, false);
  with.run(publish_taken, read<std::uint64_t>{all(plan)}, inout<std::uint64_t>{all(taken)},
           write<std::uint64_t>{all(publications)});
  const std::vector<std::uint64_t> slots{0, plan_to_bring(1, 3)};
  const std::vector<std::uint64_t> plans{1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<std::uint64_t> brought(4);
  std::vector<std::uint64_t> replays{3};
  std::vector<std::uint64_t> consumed{3};
  with.run(bring_plan, read<std::uint64_t>{all(slots)}, read<std::uint64_t>{all(plans)},
           write<std::uint64_t>{all(brought)}, inout<std::uint64_t>{all(replays)},
           write<std::uint64_t>{all(consumed)}, std::uint64_t{4});
  std::vector<std::uint8_t> moved(ring.size());
  with.run(move_span, read<std::uint8_t>{all(std::as_const(ring))},
           write<std::uint8_t>{all(moved)});
}

template <class Runner>
void run_every_kernel(Runner& with) {
  each_pair([&]<class A, class W>(types<A, W>) {
    run_matmuls<A, W>(with);
    run_row_ops<A, W>(with);
    run_attention<A, W>(with);
  });
  run_elementwise<float>(with);
  run_elementwise<bf16>(with);
  run_linears<float>(with);
  run_linears<bf16>(with);
  run_gradients(with);
  run_denoiser_ops(with);
  run_every_training_kernel(with);
  run_every_sdm_kernel(with);
  run_choices(with);
  run_switches(with);
  run_staging(with);
  run_bringing(with);
  run_publishing(with);
}

}  // namespace reprise::test
