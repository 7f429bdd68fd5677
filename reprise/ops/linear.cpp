#include "reprise/ops/linear.hpp"

#include <algorithm>
#include <type_traits>

#include "reprise/base/dtype.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/lanes.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/sum_order.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

// What a thread takes at a time: a square of outputs, over a part of the sum after the other. Both
// operands of a part are widened, rounded where asked for, and laid out for the vectors: 16 KiB
// each. All three products and both element types share the one loop over these.
constexpr std::int64_t tile = 64;
static_assert(tile == sum_part, "both panels are squares of this side");

// A matrix of rows by depth, or of depth by columns, as it lies in memory: lines of neighbouring
// elements, which run along the depth or across it. One of the pointers is there.
struct operand {
  pointer_to<const float> f32{};
  pointer_to<const bf16> b16{};
  std::int64_t stride = 0;  // elements from one line to the next
  bool along_depth = false;
  bool rounds = false;  // to tf32
};

struct product {
  std::int64_t rows, columns, depth;
  operand a, b;
  pointer_to<float> to;
  pointer_to<const float> bias;  // of `columns` elements, or null
  gradient_rule rule;
};

// Element i of line j goes to to[j * tile + i], or turned to to[i * tile + j].
template <class A>
void lay_out(pointer_to<const A> from, std::int64_t stride, std::int64_t lines, std::int64_t length,
             bool rounds, bool turned, float* to) {
  for (std::int64_t j = 0; j < lines; ++j) {
    A line[tile];
    float wide[tile];
    read_elements(from + j * stride, static_cast<std::size_t>(length), line);
    for (std::int64_t i = 0; i < length; ++i) wide[i] = widen(line[i]);
    if (rounds) {
      for (std::int64_t i = 0; i < length; ++i) wide[i] = rounded_to_tf32(wide[i]);
    }
    if (turned) {
      for (std::int64_t i = 0; i < length; ++i) to[i * tile + j] = wide[i];
    } else {
      std::copy(wide, wide + length, to + j * tile);
    }
  }
}

// The part of an operand that begins at row or column `first` and at `depth`: the panel of a as
// rows of its depth, that of b as one row of columns for each depth.
void lay_out(const operand& from, std::int64_t first, std::int64_t count, std::int64_t depth,
             std::int64_t terms, bool rows_of_depth, float* to) {
  const std::int64_t lines = from.along_depth ? count : terms;
  const std::int64_t length = from.along_depth ? terms : count;
  const std::int64_t begin =
      from.along_depth ? first * from.stride + depth : depth * from.stride + first;
  const bool turned = from.along_depth != rows_of_depth;
  if (from.f32) {
    lay_out<float>(from.f32 + begin, from.stride, lines, length, from.rounds, turned, to);
  } else {
    lay_out<bf16>(from.b16 + begin, from.stride, lines, length, false, turned, to);
  }
}

// totals += the sums of one part. Eight accumulators at every width; rows and columns past the end
// are computed along, and nobody takes them.
template <int Width>
[[gnu::always_inline]] inline void add_part(const float* a, const float* b, std::int64_t rows,
                                            std::int64_t columns, std::int64_t terms,
                                            float* totals) {
  constexpr int parts = lane_count / Width;
  constexpr int height = 8 / parts;
  for (std::int64_t row = 0; row < rows; row += height) {
    for (std::int64_t column = 0; column < columns; column += lane_count) {
      floats<Width> sums[height][parts] = {};
      for (std::int64_t l = 0; l < terms; ++l) {
        floats<Width> right[parts];
        for (int p = 0; p < parts; ++p) load<Width>(b + l * tile + column + p * Width, right[p]);
        for (int r = 0; r < height; ++r) {
          const float left = a[(row + r) * tile + l];
          for (int p = 0; p < parts; ++p) sums[r][p] += left * right[p];
        }
      }
      for (int r = 0; r < height; ++r) {
        for (int p = 0; p < parts; ++p) {
          float* const at = totals + (row + r) * tile + column + p * Width;
          floats<Width> total;
          load<Width>(at, total);
          total += sums[r][p];
          store<Width>(total, at);
        }
      }
    }
  }
}

void put_tile(const product& of, std::int64_t row, std::int64_t column, std::int64_t rows,
              std::int64_t columns, float* totals) {
  const auto count = static_cast<std::size_t>(columns);
  float other[tile];
  for (std::int64_t r = 0; r < rows; ++r) {
    float* const sums = totals + r * tile;
    const auto at = of.to + ((row + r) * of.columns + column);
    if (of.bias) {
      read_elements(of.bias + column, count, other);
      for (std::int64_t c = 0; c < columns; ++c) sums[c] += other[c];
    }
    if (of.rule == gradient_rule::add) {
      read_elements(at, count, other);
      for (std::int64_t c = 0; c < columns; ++c) sums[c] = put(of.rule, other[c], sums[c]);
    }
    write_elements(sums, count, at);
  }
}

template <class Rung>
struct product_tiles {
  product of;

  std::int64_t across() const { return (of.columns + tile - 1) / tile; }
  std::int64_t count() const { return (of.rows + tile - 1) / tile * across(); }
  std::int64_t grain() const {  // some 20 us of one core
    return std::max<std::int64_t>(1, sum_part / std::max<std::int64_t>(of.depth, 1));
  }

  [[gnu::always_inline]] void operator()(std::int64_t first, std::int64_t last) const {
    alignas(64) float a[tile * tile] = {};
    alignas(64) float b[tile * tile] = {};
    alignas(64) float totals[tile * tile];
    for (std::int64_t at = first; at < last; ++at) {
      const std::int64_t row = at / across() * tile;
      const std::int64_t column = at % across() * tile;
      const std::int64_t rows = std::min(tile, of.rows - row);
      const std::int64_t columns = std::min(tile, of.columns - column);
      std::fill(totals, totals + tile * tile, 0.0f);
      for (std::int64_t depth = 0; depth < of.depth; depth += sum_part) {
        const std::int64_t terms = std::min(sum_part, of.depth - depth);
        lay_out(of.a, row, rows, depth, terms, true, a);
        lay_out(of.b, column, columns, depth, terms, false, b);
        add_part<Rung::width>(a, b, rows, columns, terms, totals);
      }
      put_tile(of, row, column, rows, columns, totals);
    }
  }
};

template <class Rung>
void run_product(const cpu_call& call, const product& of) {
  const product_tiles<Rung> tiles{of};
  spread<Rung>(call, tiles.count(), tiles.grain(), tiles);
}

template <class A>
operand operand_of(const read<A>& from, std::int64_t stride, bool along_depth,
                   matrix_precision precision) {
  operand made;
  made.stride = stride;
  made.along_depth = along_depth;
  if constexpr (std::is_same_v<A, float>) {
    made.f32 = from.data();
    made.rounds = precision == matrix_precision::tf32;
  } else {
    made.b16 = from.data();
  }
  return made;
}

// Of y (or dy), x (or dx) and w (or dw), named as the op names them.
struct argument {
  const char* name;
  std::size_t elements;
};
std::int64_t layer_rows(const char* op, argument y, argument x, argument w, std::int64_t n,
                        std::int64_t k) {
  const std::int64_t m = whole_rows(op, y.name, y.elements, n);
  whole_rows(op, x.name, x.elements, k);
  need_at_most(op, "n", n, widest_layer);
  need_at_most(op, "k", k, widest_layer);
  need_elements(op, x.name, x.elements, static_cast<std::size_t>(m * k));
  need_elements(op, w.name, w.elements, static_cast<std::size_t>(n * k));
  return m;
}

}  // namespace

std::int64_t linear_rows(std::size_t x, std::size_t w, std::size_t bias, std::size_t y,
                         std::int64_t n, std::int64_t k) {
  const std::int64_t m = layer_rows("linear", {"y", y}, {"x", x}, {"w", w}, n, k);
  if (bias != 0) need_elements("linear", "the bias", bias, static_cast<std::size_t>(n));
  return m;
}

std::int64_t linear_input_grad_rows(std::size_t dy, std::size_t w, std::size_t dx, std::int64_t n,
                                    std::int64_t k) {
  return layer_rows("linear_input_grad", {"dy", dy}, {"dx", dx}, {"w", w}, n, k);
}

std::int64_t linear_weight_grad_rows(std::size_t dy, std::size_t x, std::size_t dw,
                                     std::size_t rule, std::int64_t n, std::int64_t k) {
  const std::int64_t m = layer_rows("linear_weight_grad", {"dy", dy}, {"x", x}, {"dw", dw}, n, k);
  need_elements("linear_weight_grad", "the rule", rule, 1);
  return m;
}

std::int64_t column_sum_rows(std::size_t dy, std::size_t db, std::size_t rule, std::int64_t n) {
  const std::int64_t m = whole_rows("column_sum", "dy", dy, n);
  need_elements("column_sum", "db", db, static_cast<std::size_t>(n));
  need_elements("column_sum", "the rule", rule, 1);
  return m;
}

template <class Rung, class A>
void linear_cpu(cpu_call& call, read<A> x, read<A> w, read<float> bias, write<float> y,
                std::int64_t n, std::int64_t k, matrix_precision precision) {
  const std::int64_t m = linear_rows(x.size(), w.size(), bias.size(), y.size(), n, k);
  if (m == 0) return;
  const pointer_to<const float> none{};
  run_product<Rung>(call,
                    {m, n, k, operand_of(x, k, true, precision), operand_of(w, k, true, precision),
                     y.data(), bias.size() == 0 ? none : bias.data(), gradient_rule::write});
}

template <class Rung, class A>
void linear_input_grad_cpu(cpu_call& call, read<A> dy, read<A> w, write<float> dx, std::int64_t n,
                           std::int64_t k, matrix_precision precision) {
  const std::int64_t m = linear_input_grad_rows(dy.size(), w.size(), dx.size(), n, k);
  if (m == 0) return;
  run_product<Rung>(call, {m,
                           k,
                           n,
                           operand_of(dy, n, true, precision),
                           operand_of(w, k, false, precision),
                           dx.data(),
                           {},
                           gradient_rule::write});
}

template <class Rung, class A>
void linear_weight_grad_cpu(cpu_call& call, read<A> dy, read<A> x, inout<float> dw,
                            read<std::int32_t> rule, std::int64_t n, std::int64_t k,
                            matrix_precision precision) {
  const std::int64_t m = linear_weight_grad_rows(dy.size(), x.size(), dw.size(), rule.size(), n, k);
  const gradient_rule what = gradient_rule_of(rule[0]);
  if (what == gradient_rule::leave) return;
  run_product<Rung>(call, {n,
                           k,
                           m,
                           operand_of(dy, n, false, precision),
                           operand_of(x, k, false, precision),
                           dw.data(),
                           {},
                           what});
}

void column_sum_cpu(cpu_call& call, read<float> dy, inout<float> db, read<std::int32_t> rule,
                    std::int64_t n) {
  const std::int64_t m = column_sum_rows(dy.size(), db.size(), rule.size(), n);
  const gradient_rule what = gradient_rule_of(rule[0]);
  if (what == gradient_rule::leave) return;
  const std::int64_t grain = std::max<std::int64_t>(1, (1 << 12) / std::max<std::int64_t>(m, 1));
  call.parallel_for((n + tile - 1) / tile, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t column = first * tile; column < std::min(last * tile, n); column += tile) {
      const std::int64_t columns = std::min(tile, n - column);
      float totals[tile] = {};
      for (std::int64_t begin = 0; begin < m; begin += sum_part) {
        float sums[tile] = {};
        for (std::int64_t i = begin; i < std::min(begin + sum_part, m); ++i) {
          float row[tile] = {};
          read_elements(dy.data() + (i * n + column), static_cast<std::size_t>(columns), row);
          for (std::int64_t c = 0; c < tile; ++c) sums[c] += row[c];
        }
        for (std::int64_t c = 0; c < tile; ++c) totals[c] += sums[c];
      }
      put_tile({1, n, m, {}, {}, db.data(), {}, what}, 0, column, 1, columns, totals);
    }
  });
}

template <class Rung>
void linear_parameter_grads_cpu(cpu_call& call, read<float> dy, read<float> x, inout<float> dw,
                                inout<float> db, read<std::int32_t> rule,
                                read<std::int32_t> bias_rule, std::int64_t n, std::int64_t k,
                                matrix_precision precision) {
  column_sum_rows(dy.size(), db.size(), bias_rule.size(), n);  // refused before anything is put
  linear_weight_grad_cpu<Rung, float>(call, dy, x, dw, rule, n, k, precision);
  column_sum_cpu(call, dy, db,
                 REPRISE_MUTANT(bias_follows_the_rule_of_its_weights) ? rule : bias_rule, n);
}

}  // namespace ops

namespace {

constexpr const char* in_parts = "linear.cu: the CPU's order of sums, products fused";

template <class A>
void add_linear_of(kernel_registry& registry) {
  registry.add(linear<A>, {
    {device_kind::cpu, "generic", ops::linear_cpu<ops::generic_rung, A>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::linear_cpu<ops::avx2_rung, A>},
        {device_kind::cpu, "avx512", ops::linear_cpu<ops::avx512_rung, A>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY((ops::linear_cuda<A>)), .source = in_parts,
      .bound = ops::other_order_of_sums<float>
    }
  });
  registry.add(linear_input_grad<A>, {
    {device_kind::cpu, "generic", ops::linear_input_grad_cpu<ops::generic_rung, A>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::linear_input_grad_cpu<ops::avx2_rung, A>},
        {device_kind::cpu, "avx512", ops::linear_input_grad_cpu<ops::avx512_rung, A>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY((ops::linear_input_grad_cuda<A>)), .source = in_parts,
      .bound = ops::other_order_of_sums<float>
    }
  });
  registry.add(linear_weight_grad<A>, {
    {device_kind::cpu, "generic", ops::linear_weight_grad_cpu<ops::generic_rung, A>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::linear_weight_grad_cpu<ops::avx2_rung, A>},
        {device_kind::cpu, "avx512", ops::linear_weight_grad_cpu<ops::avx512_rung, A>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY((ops::linear_weight_grad_cuda<A>)), .source = in_parts,
      .bound = ops::other_order_of_sums<float>
    }
  });
}

}  // namespace

void add_linear(kernel_registry& registry) {
  add_linear_of<float>(registry);
  add_linear_of<bf16>(registry);
  registry.add(column_sum, {{device_kind::cpu, "generic", ops::column_sum_cpu},
                            {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::column_sum_cuda)}});
  registry.add(linear_parameter_grads, {
    {device_kind::cpu, "generic", ops::linear_parameter_grads_cpu<ops::generic_rung>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::linear_parameter_grads_cpu<ops::avx2_rung>},
        {device_kind::cpu, "avx512", ops::linear_parameter_grads_cpu<ops::avx512_rung>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY(ops::linear_parameter_grads_cuda), .source = in_parts,
      .bound = ops::other_order_of_sums<float>
    }
  });
}

}  // namespace reprise::REPRISE_BODIES
