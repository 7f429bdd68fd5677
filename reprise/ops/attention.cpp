#include "reprise/ops/attention.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/lanes.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/sum_order.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

constexpr std::int64_t chunk_keys = 64;  // scores of a chunk stay in L1; a multiple of lane_count

bool inside(std::int64_t slot, std::int64_t position, std::int64_t slots,
            const attention_shape& shape) {
  return slot >= 0 && slot < slots && position >= 0 && position < shape.capacity;
}

bool within_limits(const attention_shape& shape) {
  const auto [heads, kv_heads, head_dim, capacity] = shape;
  return kv_heads >= 1 && heads >= kv_heads && heads % kv_heads == 0 &&
         heads / kv_heads <= max_group && head_dim >= 8 && head_dim % 8 == 0 &&
         head_dim <= max_head_dim && capacity >= 1;
}

// A partial result is head_dim sums, a maximum and a total, for each head and chunk.
std::size_t partial_row_bytes(const attention_shape& shape) {
  const std::int64_t chunks = (shape.capacity + cuda_attention_chunk - 1) / cuda_attention_chunk;
  return static_cast<std::size_t>(shape.heads * chunks * (shape.head_dim + 2)) * sizeof(float);
}

// Softmax over the keys of one row and head, chunk by chunk: what was summed so far is scaled down
// whenever the maximum rises (Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018).
template <class Rung, class A, class C>
struct attention_heads {
  static constexpr int width = Rung::width;

  pointer_to<const A> q;
  pointer_to<const C> keys;
  pointer_to<const C> values;
  pointer_to<const std::int32_t> slots;
  pointer_to<const std::int32_t> positions;
  pointer_to<A> out;
  attention_shape shape;
  std::int64_t slots_there;

  [[gnu::always_inline]] void operator()(std::int64_t first, std::int64_t last) const {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t row = i / shape.heads;
      const std::int64_t kv_head = i % shape.heads / (shape.heads / shape.kv_heads);
      const std::int64_t slot = slots[row];
      const std::int64_t position = positions[row];
      const auto to = out + i * shape.head_dim;
      if (!inside(slot, position, slots_there, shape)) {
        std::fill_n(to, shape.head_dim, narrow<A>(0.0f));
        continue;
      }
      const std::int64_t base = (slot * shape.kv_heads + kv_head) * shape.capacity * shape.head_dim;
      one_head(q + i * shape.head_dim, keys + base, values + base, position + 1, to);
    }
  }

  [[gnu::always_inline]] void one_head(pointer_to<const A> query, pointer_to<const C> key,
                                       pointer_to<const C> value, std::int64_t count,
                                       pointer_to<A> to) const {
    const float scale = 1.0f / math::sqrt(static_cast<float>(shape.head_dim));
    float top = -std::numeric_limits<float>::infinity();
    float total = 0.0f;
    alignas(64) float sums[max_head_dim];
    std::fill_n(sums, shape.head_dim, 0.0f);

    for (std::int64_t begin = 0; begin < count; begin += chunk_keys) {
      const std::int64_t n = std::min(chunk_keys, count - begin);
      alignas(64) float weight[chunk_keys];
      scores(query, key + begin * shape.head_dim, n, scale, weight);

      const float new_top = std::max(top, greatest(weight));
      exponentiate(weight, new_top);
      const float fade = math::exp(top - new_top);
      total = total * fade + lane_sum(weight);
      add_values(weight, value + begin * shape.head_dim, n, fade, sums);
      top = new_top;
    }
    for (std::int64_t d = 0; d < shape.head_dim; ++d) to[d] = narrow<A>(sums[d] / total);
  }

  // Past the n keys of a chunk: -inf, of which exp makes zero.
  [[gnu::always_inline]] void scores(pointer_to<const A> query, pointer_to<const C> key,
                                     std::int64_t n, float scale, float (&to)[chunk_keys]) const {
    constexpr int block = 8;
    const std::int64_t d = shape.head_dim;
    std::int64_t t = 0;
    for (; t + block <= n; t += block) {
      float dots[block];
      dot_block<width, 1, block>(query, d, key + t * d, d, d, dots);
      for (int j = 0; j < block; ++j) to[t + j] = dots[j] * scale;
    }
    for (; t < n; ++t) {
      float dot[1];
      dot_block<width, 1, 1>(query, d, key + t * d, d, d, dot);
      to[t] = dot[0] * scale;
    }
    for (; t < chunk_keys; ++t) to[t] = -std::numeric_limits<float>::infinity();
  }

  [[gnu::always_inline]] static float greatest(const float (&weight)[chunk_keys]) {
    float lane[lane_count];
    std::copy_n(weight, lane_count, lane);
    for (std::int64_t t = lane_count; t < chunk_keys; t += lane_count) {
      for (int j = 0; j < lane_count; ++j) {
        lane[j] = lane[j] < weight[t + j] ? weight[t + j] : lane[j];
      }
    }
    return *std::max_element(lane, lane + lane_count);
  }

  [[gnu::always_inline]] static void exponentiate(float (&weight)[chunk_keys], float top) {
#if defined(__clang__)  // makes vectors of this loop; refuses to return one to another target
    for (float& w : weight) w = math::exp(w - top);
#else
    for (std::int64_t t = 0; t < chunk_keys; t += width) {
      floats<width> w;
      load<width>(weight + t, w);
      store<width>(math::exp<floats<width>>(w - top), weight + t);
    }
#endif
  }

  [[gnu::always_inline]] static float lane_sum(const float (&weight)[chunk_keys]) {
    float lane[lane_count] = {};
    for (std::int64_t t = 0; t < chunk_keys; t += lane_count) {
      for (int j = 0; j < lane_count; ++j) lane[j] += weight[t + j];
    }
    for (int half = lane_count / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j) lane[j] += lane[j + half];
    }
    return lane[0];
  }

  // sums = sums * fade + sum over t of weight[t] * value[t], in increasing t.
  [[gnu::always_inline]] void add_values(const float (&weight)[chunk_keys],
                                         pointer_to<const C> value, std::int64_t n, float fade,
                                         float* sums) const {
    std::int64_t d = 0;
    for (; d + 4 * width <= shape.head_dim; d += 4 * width) {
      add_columns<4>(weight, value + d, n, fade, sums + d);
    }
    for (; d + width <= shape.head_dim; d += width) {
      add_columns<1>(weight, value + d, n, fade, sums + d);
    }
    for (; d < shape.head_dim; ++d) {
      sums[d] *= fade;
      for (std::int64_t t = 0; t < n; ++t) {
        sums[d] += weight[t] * widen(value[t * shape.head_dim + d]);
      }
    }
  }

  template <int Parts>
  [[gnu::always_inline]] void add_columns(const float (&weight)[chunk_keys],
                                          pointer_to<const C> value, std::int64_t n, float fade,
                                          float* sums) const {
    floats<width> acc[Parts];
    for (int p = 0; p < Parts; ++p) {
      load<width>(sums + p * width, acc[p]);
      acc[p] *= fade;
    }
    for (std::int64_t t = 0; t < n; ++t) {
      for (int p = 0; p < Parts; ++p) {
        floats<width> v;
        load<width>(value + t * shape.head_dim + p * width, v);
        acc[p] += weight[t] * v;
      }
    }
    for (int p = 0; p < Parts; ++p) store<width>(acc[p], sums + p * width);
  }
};

}  // namespace

std::int64_t cache_slots(const char* op, std::size_t keys, std::size_t values, std::size_t slots,
                         std::size_t positions, const attention_shape& shape) {
  const auto [heads, kv_heads, head_dim, capacity] = shape;
  if (!within_limits(shape)) {
    throw usage_error{fmt::format(
        "{}: {} heads, {} kv heads, head_dim {}, capacity {}; give heads that are a multiple of kv "
        "heads (at most {} times as many), head_dim a multiple of 8 up to {}, capacity at least 1",
        op, heads, kv_heads, head_dim, capacity, max_group, max_head_dim)};
  }
  const std::int64_t there = whole_rows(op, "keys", keys, kv_heads * capacity * head_dim);
  need_elements(op, "values", values, keys);
  need_elements(op, "positions", positions, slots);
  return there;
}

std::int64_t attention_pass_rows(std::int64_t m, const attention_shape& shape) {
  constexpr std::size_t limit = std::size_t{64} << 20;
  const auto fit = static_cast<std::int64_t>(limit / partial_row_bytes(shape));
  return std::min(m, std::max<std::int64_t>(1, fit));
}

std::size_t attention_workspace_bytes(std::int64_t m, const attention_shape& shape) {
  if (!within_limits(shape)) return 0;  // asked before the body, which refuses the shape
  return static_cast<std::size_t>(attention_pass_rows(m, shape)) * partial_row_bytes(shape);
}

template <class A, class C>
void cache_append_cpu(cpu_call& call, read<A> k, read<A> v, read<std::int32_t> slots,
                      read<std::int32_t> positions, write<C> keys, write<C> values,
                      attention_shape shape) {
  const std::int64_t there = cache_slots("cache_append", keys.size(), values.size(), slots.size(),
                                         positions.size(), shape);
  const std::int64_t width = shape.kv_heads * shape.head_dim;
  need_elements("cache_append", "k", k.size(), slots.size() * static_cast<std::size_t>(width));
  need_elements("cache_append", "v", v.size(), k.size());
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / width);
  const auto m = static_cast<std::int64_t>(slots.size());
  call.parallel_for(m, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t slot = slots.data()[i];
      const std::int64_t position = positions.data()[i];
      if (!inside(slot, position, there, shape)) continue;
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t head = slot * shape.kv_heads + j / shape.head_dim;
        const std::int64_t to =
            (head * shape.capacity + position) * shape.head_dim + j % shape.head_dim;
        keys.data()[to] = narrow<C>(widen(k.data()[i * width + j]));
        values.data()[to] = narrow<C>(widen(v.data()[i * width + j]));
      }
    }
  });
}

template <class Rung, class A, class C>
void attention_cpu(cpu_call& call, read<A> q, read<C> keys, read<C> values,
                   read<std::int32_t> slots, read<std::int32_t> positions, write<A> out,
                   attention_shape shape) {
  const std::int64_t there =
      cache_slots("attention", keys.size(), values.size(), slots.size(), positions.size(), shape);
  const std::int64_t m = static_cast<std::int64_t>(slots.size());
  need_elements("attention", "q", q.size(),
                static_cast<std::size_t>(m * shape.heads * shape.head_dim));
  need_elements("attention", "out", out.size(), q.size());
  if (m == 0) return;

  std::int64_t key_count = m;
  for (std::int64_t i = 0; i < m; ++i) key_count += std::max(positions.data()[i], 0);
  const std::int64_t mean = key_count / m * shape.head_dim;  // half the products of one head
  const attention_heads<Rung, A, C> heads{
      q.data(),         keys.data(), values.data(), slots.data(),
      positions.data(), out.data(),  shape,         there};
  spread<Rung>(call, m * shape.heads, std::max<std::int64_t>(1, (1 << 16) / mean), heads);
}

}  // namespace ops

namespace {

template <class A, class C>
std::size_t workspace_bytes(read<A>, read<C>, read<C>, read<std::int32_t> slots, read<std::int32_t>,
                            write<A>, attention_shape shape) {
  return ops::attention_workspace_bytes(static_cast<std::int64_t>(slots.size()), shape);
}

template <class A, class C>
void add_attention_of(kernel_registry& registry) {
  registry.add(cache_append<A, C>,
               {{device_kind::cpu, "generic", ops::cache_append_cpu<A, C>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY((ops::cache_append_cuda<A, C>))}});
  registry.add(attention<A, C>, {
    {device_kind::cpu, "generic", ops::attention_cpu<ops::generic_rung, A, C>},
#if defined(REPRISE_X86_RUNGS)
        {device_kind::cpu, "avx2", ops::attention_cpu<ops::avx2_rung, A, C>},
        {device_kind::cpu, "avx512", ops::attention_cpu<ops::avx512_rung, A, C>},
#endif
    {
      .device = device_kind::cuda, .arch = "sm_80",
      .body = REPRISE_CUDA_BODY((ops::attention_cuda<A, C>)),
      .workspace_bytes = workspace_bytes<A, C>,
      .source = "attention.cu: keys in chunks of a fixed length, then their sums", .bound = {
        .relative = 2 * ops::other_order_of_sums<A>.relative
      }
    }
  });
}

}  // namespace

void add_attention(kernel_registry& registry) {
  add_attention_of<float, float>(registry);
  add_attention_of<float, bf16>(registry);
  add_attention_of<bf16, bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
