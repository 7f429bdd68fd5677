#include "reprise/platform/op_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
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
#include "reprise/ops/timestep_embedding.hpp"
#include "reprise/platform/op_values.hpp"
#include "reprise/platform/sdm_op_cases.hpp"
#include "reprise/platform/training_op_cases.hpp"
#include "reprise/replay/stage_inputs.hpp"
#include "reprise/tap/bring_plan.hpp"
#include "reprise/tap/move_span.hpp"
#include "reprise/tap/plan_words.hpp"
#include "reprise/tap/publish_taken.hpp"
#include "reprise/tap/take_rows.hpp"

namespace reprise {

namespace {

using op_values::count_of;
using op_values::in;
using op_values::random_values;
using op_values::room;
using op_values::to;
using tokens = std::vector<std::int32_t>;

template <class A, class W>
void show_matmuls(const see_case& see) {
  constexpr std::array<std::array<std::int64_t, 3>, 11> shapes{{{1, 1, 1},
                                                                {1, 192, 192},
                                                                {3, 64, 192},
                                                                {5, 7, 13},
                                                                {8, 512, 192},
                                                                {17, 192, 512},
                                                                {33, 9, 65},
                                                                {64, 256, 40},
                                                                {100, 33, 129},
                                                                {2, 4096, 1024},
                                                                {130, 31, 31}}};
  for (const auto& [m, n, k] : shapes) {
    const auto x = random_values<A>(count_of(m, k), 1);
    const auto w = random_values<W>(count_of(n, k), 2);
    auto y = random_values<A>(count_of(m, n), 3);
    const std::string name = fmt::format("{}x{}x{}", m, n, k);
    see(case_of(matmul<A, W>, name, read<A>{in(x)}, read<W>{in(w)}, write<A>{to(y)}, n, k));
    see(case_of(matmul_add<A, W>, name, read<A>{in(x)}, read<W>{in(w)}, inout<A>{to(y)}, n, k));
  }
}

// CUDA's three tiles are taken, each through more than one round of a sum: the small one by the
// forward of 700x33x1000, the large one by that of the last, the middle one by the gradients there.
template <class A>
void show_linears(const see_case& see) {
  constexpr std::array<std::array<std::int64_t, 3>, 7> shapes{{{1, 1, 1},
                                                               {32, 256, 256},
                                                               {5, 7, 13},
                                                               {67, 70, 129},
                                                               {300, 257, 30},
                                                               {700, 33, 1000},
                                                               {1100, 1040, 200}}};
  for (const auto& [m, n, k] : shapes) {
    const auto x = random_values<A>(count_of(m, k), 50);
    const auto w = random_values<A>(count_of(n, k), 51);
    const auto bias = random_values<float>(count_of(1, n), 52);
    const auto dy = random_values<A>(count_of(m, n), 53);
    auto dw = random_values<float>(count_of(n, k), 54);
    auto y = room<float>(count_of(m, n));
    auto dx = room<float>(count_of(m, k));
    for (const auto precision : {matrix_precision::full, matrix_precision::tf32}) {
      const std::string name = fmt::format("{}x{}x{}, {}", m, n, k, name_of(precision));
      see(case_of(linear<A>, name, read<A>{in(x)}, read<A>{in(w)}, read<float>{in(bias)},
                  write<float>{to(y)}, n, k, precision));
      see(case_of(linear_input_grad<A>, name, read<A>{in(dy)}, read<A>{in(w)}, write<float>{to(dx)},
                  n, k, precision));
      for (const auto rule : {gradient_rule::write, gradient_rule::add}) {
        const std::vector<std::int32_t> word{static_cast<std::int32_t>(rule)};
        see(case_of(linear_weight_grad<A>, fmt::format("{}, {}", name, name_of(rule)),
                    read<A>{in(dy)}, read<A>{in(x)}, inout<float>{to(dw)},
                    read<std::int32_t>{in(word)}, n, k, precision));
        if constexpr (std::is_same_v<A, float>) {
          auto db = random_values<float>(count_of(1, n), 55);
          see(case_of(linear_parameter_grads, fmt::format("{}, {}", name, name_of(rule)),
                      read<float>{in(dy)}, read<float>{in(x)}, inout<float>{to(dw)},
                      inout<float>{to(db)}, read<std::int32_t>{in(word)},
                      read<std::int32_t>{in(word)}, n, k, precision));
        }
      }
    }
  }
}

void show_gradients(const see_case& see) {
  constexpr std::array<std::array<std::int64_t, 2>, 4> shapes{
      {{1, 1}, {64, 256}, {131, 70}, {5000, 3}}};
  for (const auto& [m, n] : shapes) {
    const auto dy = random_values<float>(count_of(m, n), 55);
    for (const auto rule : {gradient_rule::write, gradient_rule::add}) {
      const std::string name = fmt::format("{}x{}, {}", m, n, name_of(rule));
      const std::vector<std::int32_t> word{static_cast<std::int32_t>(rule)};
      auto db = random_values<float>(count_of(1, n), 56);
      see(case_of(column_sum, name, read<float>{in(dy)}, inout<float>{to(db)},
                  read<std::int32_t>{in(word)}, n));
      auto grad = random_values<float>(count_of(m, n), 57);
      see(case_of(put_gradient, name, read<float>{in(dy)}, inout<float>{to(grad)}, rule));
    }
    auto narrowed = room<bf16>(count_of(m, n));
    see(case_of(narrow_to_bf16, fmt::format("{}x{}", m, n), read<float>{in(dy)},
                write<bf16>{to(narrowed)}));
  }
}

template <class A, class W>
void show_row_ops(const see_case& see) {
  constexpr std::int64_t rows = 5;
  for (const std::int64_t width : {1, 7, 192, 1000, 4096, 4100}) {
    const std::string name = fmt::format("{} rows of {}", rows, width);
    const auto x = random_values<A>(count_of(rows, width), 4);
    const auto gain = random_values<W>(count_of(1, width), 5);
    auto y = room<A>(x.size());
    see(case_of(rms_norm<A, W>, name, read<A>{in(x)}, read<W>{in(gain)}, write<A>{to(y)}, width,
                1e-5F));
    const auto table = random_values<W>(count_of(11, width), 6);
    const tokens chosen{0, 10, -1, 3, 11};  // two of them are no tokens
    see(case_of(embedding<A, W>, name, read<std::int32_t>{in(chosen)}, read<W>{in(table)},
                write<A>{to(y)}, width));
  }
}

template <class A, class C>
void show_attentions(const see_case& see) {
  const std::array<attention_shape, 4> shapes{
      {{6, 2, 32, 64}, {1, 1, 8, 5}, {8, 8, 64, 600}, {32, 8, 128, 300}}};
  for (const attention_shape& shape : shapes) {
    const std::string name = fmt::format("{} heads, {} for keys, of {}, capacity {}", shape.heads,
                                         shape.kv_heads, shape.head_dim, shape.capacity);
    const auto last = static_cast<std::int32_t>(shape.capacity - 1);
    const auto rows = std::int64_t{5};
    const tokens slots{0, 1, 1, 0, 7};  // the last is padding
    const tokens positions{0, last, last / 2, std::min(last, 257), 0};
    const auto q = random_values<A>(count_of(rows, shape.heads * shape.head_dim), 10);
    const auto k = random_values<A>(count_of(rows, shape.kv_heads * shape.head_dim), 8);
    const auto v = random_values<A>(k.size(), 9);
    const auto cache = count_of(2 * shape.kv_heads * shape.capacity, shape.head_dim);
    auto keys = random_values<C>(cache, 11);
    auto values = random_values<C>(cache, 12);
    auto out = room<A>(q.size());
    see(case_of(attention<A, C>, name, read<A>{in(q)}, read<C>{in(keys)}, read<C>{in(values)},
                read<std::int32_t>{in(slots)}, read<std::int32_t>{in(positions)}, write<A>{to(out)},
                shape));
    see(case_of(cache_append<A, C>, name, read<A>{in(k)}, read<A>{in(v)},
                read<std::int32_t>{in(slots)}, read<std::int32_t>{in(positions)},
                write<C>{to(keys)}, write<C>{to(values)}, shape));
  }
}

template <class A>
void show_elementwise(const see_case& see) {
  for (const std::size_t count : {1U, 31U, 1000U, 12345U}) {
    const std::string name = fmt::format("{} elements", count);
    const auto gate = random_values<A>(count, 7, 8.0F);
    const auto up = random_values<A>(count, 8);
    auto out = room<A>(count);
    see(case_of(swiglu<A>, name, read<A>{in(gate)}, read<A>{in(up)}, write<A>{to(out)}));
    see(case_of(random_normal<A>, name, write<A>{to(out)}, std::uint64_t{9}, std::uint64_t{3},
                0.5F));
  }
  for (const std::int64_t head_dim : {8, 32, 128, 320}) {
    const tokens positions{0, 1, 17, 1023, 100000};
    constexpr std::int64_t heads = 3;
    auto x = random_values<A>(positions.size() * count_of(heads, head_dim), 9);
    const auto frequencies = rope_inverse_frequencies(head_dim, 10000.0);
    see(case_of(rope<A>, fmt::format("heads of {}", head_dim), inout<A>{to(x)},
                read<std::int32_t>{in(positions)}, read<float>{in(frequencies)}, heads, head_dim));
  }
}

void show_choices(const see_case& see) {
  constexpr std::int64_t rows = 3;
  for (const std::int64_t width : {1, 2, 255, 256, 5000, 151936}) {
    const auto logits = random_values<float>(count_of(rows, width), 13, 6.0F);
    auto out = room<std::int32_t>(rows);
    see(case_of(argmax, fmt::format("width {}", width), read<float>{in(logits)},
                write<std::int32_t>{to(out)}, width));
    const std::vector<float> temperatures{0.7F, 1.0F, 0.0F};
    const std::vector<float> top_ps{0.9F, 1.0F, 0.5F};
    const std::vector<std::uint64_t> counters{1, 2, 3};
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      const std::vector<std::uint64_t> seeds(rows, seed);
      see(case_of(sample, fmt::format("width {}, seed {}", width, seed), read<float>{in(logits)},
                  read<float>{in(temperatures)}, read<float>{in(top_ps)},
                  read<std::uint64_t>{in(seeds)}, read<std::uint64_t>{in(counters)},
                  write<std::int32_t>{to(out)}, width));
    }
  }
  const std::vector<std::uint64_t> base{42, 100};
  for (const std::size_t count : {1U, 1003U}) {
    auto out = room<float>(count);
    see(case_of(random_uniform, fmt::format("{} elements", count), read<std::uint64_t>{in(base)},
                write<float>{to(out)}, std::uint64_t{7}));
  }
}

// Segments are whole units of 16 bytes: padding may be copied or not. One block of the CUDA body
// brings the small ones, four the others.
void show_staging(const see_case& see) {
  for (const std::size_t bytes : {96U, 12'384U}) {
    const std::size_t slot_bytes = stage_header_bytes(bytes) + bytes;
    std::vector<std::uint8_t> ring(2 * slot_bytes);
    for (std::size_t i = 0; i < ring.size(); ++i) ring[i] = static_cast<std::uint8_t>(i * 31);
    const std::uint64_t there = 0b101;  // the second of three segments is not
    for (std::size_t i = 0; i < stage_masks(bytes); ++i) {
      std::memcpy(ring.data() + slot_bytes + i * stage_mask_apart, &there, sizeof there);
    }
    std::vector<std::uint8_t> block(bytes, 0xee);
    std::vector<std::uint64_t> words{3, 0, 0, bytes - 64, bytes - 48, 16, bytes - 16, 16};
    std::vector<std::uint64_t> consumed{3};
    see(case_of(stage_inputs, fmt::format("three segments in {} bytes", bytes),
                read<std::uint8_t>{in(ring)}, write<std::uint8_t>{to(block)},
                inout<std::uint64_t>{to(words)}, write<std::uint64_t>{to(consumed)}, slot_bytes,
                std::uint64_t{2}, std::uint64_t{3}));
  }
}

void show_bringing(const see_case& see) {
  for (const std::int64_t bytes : {1, 16, 4099}) {
    std::vector<std::uint8_t> from(count_of(bytes, 1));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 37);
    auto copied = room<std::uint8_t>(from.size());
    see(case_of(bring, fmt::format("{} bytes", bytes), read<std::uint8_t>{in(from)},
                write<std::uint8_t>{to(copied)}));
  }
}

// Rows of a width that takes 16 bytes at a time, four, and one, in two runs; across the end of the
// ring, behind a marker, and with a run that asks for more rows than there are. Few, and so many
// that several blocks of the CUDA body share both runs.
void show_publishing(const see_case& see) {
  for (const std::uint64_t rows : {12U, 900U}) {
    for (const std::uint64_t row_bytes : {64U, 20U, 13U}) {
      const std::uint64_t capacity = padded(rows * row_bytes + 64);
      std::vector<std::uint8_t> source(rows * row_bytes);
      for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i * 29);
      const std::uint64_t first = rows / 3, most = rows * 3 / 4 * row_bytes;
      const std::vector<std::uint64_t> plan{
          3 * capacity - 32, capacity, most, 1, 5, 7, 8, descriptor::marked, 2, 1, first,
          rows - first,      rows};
      std::vector<std::uint8_t> ring(capacity, 0xee);
      std::vector<std::uint64_t> taken{0};
      see(case_of(take_rows, fmt::format("{} rows of {} bytes", rows, row_bytes),
                  read<std::uint8_t>{in(source)}, read<std::int64_t>{view<const std::int64_t>{}},
                  read<std::uint64_t>{in(plan)}, write<std::uint8_t>{to(ring)},
                  write<std::uint64_t>{to(taken)}, std::uint64_t{0}, std::uint64_t{3}, row_bytes));
    }
  }
  for (const std::size_t producers : {1U, 36U, 700U}) {
    std::vector<std::uint64_t> plan(producers * descriptor_words);
    std::vector<std::uint64_t> taken(producers);
    for (std::size_t i = 0; i < producers; ++i) {
      plan[i * descriptor_words + descriptor::slot] = producers - 1 - i;
      taken[i] = i % 3 == 1 ? 0 : publication::word(2, i, 16 * i, false);
    }
    std::vector<std::uint64_t> publications(producers, 6);
    see(case_of(publish_taken, fmt::format("{} producers", producers),
                read<std::uint64_t>{in(plan)}, inout<std::uint64_t>{to(taken)},
                write<std::uint64_t>{to(publications)}));
  }
  std::vector<std::uint64_t> plans(3 * 5000);
  for (std::size_t i = 0; i < plans.size(); ++i) plans[i] = i * 77;
  for (const std::uint64_t words : {0U, 1U, 36U, 4999U}) {
    const std::vector<std::uint64_t> slots{7, plan_to_bring(2, words)};
    std::vector<std::uint64_t> brought(5000, 9);
    std::vector<std::uint64_t> replays{5};
    std::vector<std::uint64_t> consumed{5};
    see(case_of(bring_plan, fmt::format("{} words", words), read<std::uint64_t>{in(slots)},
                read<std::uint64_t>{in(plans)}, write<std::uint64_t>{to(brought)},
                inout<std::uint64_t>{to(replays)}, write<std::uint64_t>{to(consumed)},
                std::uint64_t{5000}));
  }
  for (const std::int64_t bytes : {16, 4096, 65552}) {
    std::vector<std::uint8_t> from(count_of(bytes, 1));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(i * 41);
    auto moved = room<std::uint8_t>(from.size());
    see(case_of(move_span, fmt::format("{} bytes", bytes), read<std::uint8_t>{in(from)},
                write<std::uint8_t>{to(moved)}));
  }
}

template <class A, class W>
void show_pair(const see_case& see) {
  show_matmuls<A, W>(see);
  show_row_ops<A, W>(see);
  show_attentions<A, W>(see);
}

void show_layers(const see_case& see) {
  for (const std::int64_t width : {1, 7, 33, 256, 1000}) {
    const std::string name = fmt::format("5 rows of {}", width);
    const auto x = random_values<float>(count_of(5, width), 30, 4.0F);
    const auto gain = random_values<float>(count_of(1, width), 31);
    const auto bias = random_values<float>(count_of(1, width), 32);
    auto y = room<float>(x.size());
    see(case_of(layer_norm, name, read<float>{in(x)}, read<float>{in(gain)}, read<float>{in(bias)},
                write<float>{to(y)}, width, 1e-5F));
    see(case_of(bias_add, name, read<float>{in(x)}, read<float>{in(bias)}, write<float>{to(y)}));
    see(case_of(gelu, name, read<float>{in(x)}, write<float>{to(y)}));
  }
  for (const std::int64_t width : {2, 6, 64, 250}) {
    const std::vector<float> times{0, 1e-3F, 0.25F, 0.5F, 1};
    auto out = room<float>(count_of(5, width));
    see(case_of(timestep_embedding, fmt::format("5 times in {}", width), read<float>{in(times)},
                write<float>{to(out)}, width));
  }
}

void show_flow(const see_case& see) {
  const std::vector<float> scale{2.5F};
  const std::vector<float> dt{-0.05F};
  const std::vector<float> sigma{0.3F};
  const std::vector<float> factors{1.25F, -1.25F};
  for (const std::int64_t count : {1, 3, 784, 5003}) {
    const std::string name = fmt::format("{} elements", count);
    const auto a = random_values<float>(count_of(1, count), 40);
    const auto b = random_values<float>(count_of(1, count), 41);
    auto x = random_values<float>(count_of(1, count), 42);
    auto out = room<float>(x.size());
    see(case_of(guide, name, read<float>{in(a)}, read<float>{in(b)}, read<float>{in(scale)},
                write<float>{to(out)}));
    see(case_of(flow_drift, name, read<float>{in(a)}, read<float>{in(b)}, read<float>{in(factors)},
                write<float>{to(out)}));
    see(case_of(euler_step, name, inout<float>{to(x)}, read<float>{in(a)}, read<float>{in(dt)}));
    see(case_of(sde_step, name, inout<float>{to(x)}, read<float>{in(a)}, read<float>{in(b)},
                read<float>{in(dt)}, read<float>{in(sigma)}));
  }
}

}  // namespace

void each_builtin_op_case(const see_case& see) {
  show_pair<float, float>(see);
  show_pair<float, bf16>(see);
  show_pair<bf16, bf16>(see);
  show_elementwise<float>(see);
  show_elementwise<bf16>(see);
  show_choices(see);
  show_layers(see);
  show_flow(see);
  show_linears<float>(see);
  show_linears<bf16>(see);
  show_gradients(see);
  show_training_op_cases(see);
  show_staging(see);
  show_bringing(see);
  show_publishing(see);
  each_sdm_op_case(see);
}

}  // namespace reprise
