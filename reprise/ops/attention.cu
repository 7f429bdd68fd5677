// attention on CUDA: one block per (row, kv head, chunk of 128 keys), then one that combines.
//
// Floor: the keys and values that a row attends to, read once for all query heads that share them
// (H200: 4.4 TB/s); at short lengths the latency of two kernels. Blocks of chunks past a row's
// length leave at once.
//
// A key or value is read by a team of lanes, 16 bytes each; the size of a team depends on head_dim
// and the element type. Scores: a lane's products in increasing d, then the team by exchange. Sums
// of values: each team takes every so-many-th key of the chunk in order, then the teams of a warp
// by exchange, then the warps in order. Chunks leave their maximum, total and sums in the workspace
// and are combined in order. None of this depends on other rows.
//
// m rows whose partial results would not fit the workspace are taken in several passes.
#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/cuda/call.cuh"
#include "reprise/ops/attention.hpp"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int warps = 8;
constexpr int threads = warps * 32;
constexpr int chunk = cuda_attention_chunk;
constexpr int at_once = 4;  // keys or values that a lane has in flight
constexpr unsigned whole_warp = 0xffffffffu;

// The cache and who reads it; the rows of one pass begin at `first_row`.
template <class C>
struct cache_view {
  read<C> keys, values;
  read<std::int32_t> slots, positions;
  attention_shape shape;
  std::int64_t slot_count;
  std::int64_t first_row;

  // Keys that the row attends to; 0 for a row that is padding.
  __device__ std::int64_t length(std::int64_t row) const {
    const std::int64_t slot = slots.data()[row];
    const std::int64_t position = positions.data()[row];
    const bool inside =
        slot >= 0 && slot < slot_count && position >= 0 && position < shape.capacity;
    return inside ? position + 1 : 0;
  }
  __device__ std::int64_t offset(std::int64_t row, std::int64_t kv_head) const {
    return (slots.data()[row] * shape.kv_heads + kv_head) * shape.capacity * shape.head_dim;
  }
};

// Where a chunk of a head leaves its result: head_dim sums, the maximum, the total.
template <class Float>
__device__ Float* partial_of(Float* workspace, std::int64_t row_of_pass, std::int64_t head,
                             std::int64_t chunk_index, const attention_shape& shape) {
  const std::int64_t chunks = (shape.capacity + chunk - 1) / chunk;
  return workspace +
         ((row_of_pass * shape.heads + head) * chunks + chunk_index) * (shape.head_dim + 2);
}

// 16 bytes of the cache as f32.
__device__ void load_piece(const float* from, float (&to)[4]) {
  const float4 v = __ldg(reinterpret_cast<const float4*>(from));
  to[0] = v.x;
  to[1] = v.y;
  to[2] = v.z;
  to[3] = v.w;
}
__device__ void load_piece(const bf16* from, float (&to)[8]) {
  load_eight(from, to);
}

// weight[h][key] = <query[h], key> * scale, for `count` keys.
template <int Batch, class C>
__device__ void score(const C* keys, int count, int head_dim, int team, float scale,
                      const float (&query)[Batch][max_head_dim], float (&weight)[Batch][chunk]) {
  constexpr int elements = 16 / sizeof(C);
  const int member = threadIdx.x % team;
  const int teams = threads / team;
  for (int begin = 0; begin < count; begin += teams * at_once) {  // the same for the whole block
    const int first = begin + threadIdx.x / team;
    float dots[Batch][at_once] = {};
    for (int d = member * elements; d < head_dim; d += team * elements) {
      float key[at_once][elements];
#pragma unroll
      for (int u = 0; u < at_once; ++u) {
        load_piece(keys + std::int64_t{min(first + u * teams, count - 1)} * head_dim + d, key[u]);
      }
#pragma unroll
      for (int h = 0; h < Batch; ++h) {
#pragma unroll
        for (int e = 0; e < elements; ++e) {
          const float q = query[h][d + e];
#pragma unroll
          for (int u = 0; u < at_once; ++u) dots[h][u] = fmaf(q, key[u][e], dots[h][u]);
        }
      }
    }
    for (int step = team / 2; step > 0; step /= 2) {
#pragma unroll
      for (int h = 0; h < Batch; ++h) {
#pragma unroll
        for (int u = 0; u < at_once; ++u) {
          dots[h][u] += __shfl_xor_sync(whole_warp, dots[h][u], step);
        }
      }
    }
    if (member != 0) continue;
#pragma unroll
    for (int u = 0; u < at_once; ++u) {
      if (first + u * teams >= count) break;
#pragma unroll
      for (int h = 0; h < Batch; ++h) weight[h][first + u * teams] = dots[h][u] * scale;
    }
  }
}

// One warp: scores become exp(score - maximum), and 0 past `count`.
__device__ void exponentiate(float (&weight)[chunk], int count, float& top, float& total) {
  constexpr int each = chunk / 32;
  const int lane = threadIdx.x % 32;
  float score[each];
  top = -__int_as_float(0x7f800000);
#pragma unroll
  for (int i = 0; i < each; ++i) {
    score[i] = lane + 32 * i < count ? weight[lane + 32 * i] : -__int_as_float(0x7f800000);
    top = fmaxf(top, score[i]);
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    top = fmaxf(top, __shfl_xor_sync(whole_warp, top, step));
  }
  total = 0.0f;
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const float e = math::exp(score[i] - top);
    weight[lane + 32 * i] = e;
    total += e;
  }
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(whole_warp, total, step);
}

// sums[h] = the values of a lane's piece, weighted, over all teams of its warp.
template <int Batch, class C, int Elements>
__device__ void sum_values(const C* values, int count, int head_dim, int team, int d,
                           const float (&weight)[Batch][chunk], float (&sums)[Batch][Elements]) {
  const int teams = threads / team;
#pragma unroll
  for (int h = 0; h < Batch; ++h) {
#pragma unroll
    for (int e = 0; e < Elements; ++e) sums[h][e] = 0.0f;
  }
  if (d < head_dim) {
#pragma unroll at_once
    for (int key = threadIdx.x / team; key < count; key += teams) {
      float value[Elements];
      load_piece(values + std::int64_t{key} * head_dim + d, value);
#pragma unroll
      for (int h = 0; h < Batch; ++h) {
        const float w = weight[h][key];
#pragma unroll
        for (int e = 0; e < Elements; ++e) sums[h][e] = fmaf(w, value[e], sums[h][e]);
      }
    }
  }
  for (int step = team; step < 32; step *= 2) {
#pragma unroll
    for (int h = 0; h < Batch; ++h) {
#pragma unroll
      for (int e = 0; e < Elements; ++e) {
        sums[h][e] += __shfl_xor_sync(whole_warp, sums[h][e], step);
      }
    }
  }
}

// Batch query heads at a time.
template <int Batch, class A, class C>
__global__ void __launch_bounds__(threads, 2)
    attend_chunk(read<A> q, cache_view<C> cache, float* workspace, int team, float scale) {
  constexpr int elements = 16 / sizeof(C);
  constexpr int room = 512;  // floats that a warp hands over at a time
  __shared__ float query[Batch][max_head_dim];
  __shared__ float weight[Batch][chunk];
  __shared__ float handed[warps][room];

  const std::int64_t row = cache.first_row + blockIdx.x;
  const std::int64_t begin = std::int64_t{blockIdx.z} * chunk;
  const std::int64_t left = cache.length(row) - begin;
  if (left <= 0) return;
  const int count = left < chunk ? static_cast<int>(left) : chunk;
  const int head_dim = static_cast<int>(cache.shape.head_dim);
  const int group = static_cast<int>(cache.shape.heads / cache.shape.kv_heads);
  const std::int64_t offset = cache.offset(row, blockIdx.y) + begin * head_dim;
  const C* keys = cache.keys.data() + offset;
  const C* values = cache.values.data() + offset;
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  const int span = team * elements;  // of head_dim, that a team covers at a time
  const int heads_handed = room / span;

  for (int first = 0; first < group; first += Batch) {
    const std::int64_t head = std::int64_t{blockIdx.y} * group + first;
    const int live = min(Batch, group - first);
    const auto result = [&](int h) {
      return partial_of(workspace, blockIdx.x, head + h, blockIdx.z, cache.shape);
    };
    __syncthreads();  // the batch before has been read
    for (int i = threadIdx.x; i < Batch * head_dim; i += threads) {
      const int h = min(i / head_dim, live - 1);
      query[i / head_dim][i % head_dim] =
          widen(q.data()[(row * cache.shape.heads + head + h) * head_dim + i % head_dim]);
    }
    __syncthreads();
    score(keys, count, head_dim, team, scale, query, weight);
    __syncthreads();
    static_assert(Batch <= warps);
    if (warp < live) {
      float top, total;
      exponentiate(weight[warp], count, top, total);
      if (lane == 0) {
        result(warp)[head_dim] = top;
        result(warp)[head_dim + 1] = total;
      }
    }
    __syncthreads();
    for (int d = 0; d < head_dim; d += span) {
      float sums[Batch][elements];
      sum_values(values, count, head_dim, team, d + threadIdx.x % team * elements, weight, sums);
      for (int from = 0; from < live; from += heads_handed) {
        __syncthreads();  // what was handed before has been read
        if (lane < team) {
#pragma unroll
          for (int h = 0; h < Batch; ++h) {
            if (h < from || h >= from + heads_handed) continue;
#pragma unroll
            for (int e = 0; e < elements; ++e) {
              handed[warp][(h - from) * span + lane * elements + e] = sums[h][e];
            }
          }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < heads_handed * span; i += threads) {
          const int h = from + i / span;
          if (h >= live || d + i % span >= head_dim) continue;
          float sum = handed[0][i];
#pragma unroll
          for (int w = 1; w < warps; ++w) sum += handed[w][i];
          result(h)[d + i % span] = sum;
        }
      }
    }
  }
}

// One block per row and head, one thread per element of the head.
template <class A, class C>
__global__ void __launch_bounds__(max_head_dim)
    combine_chunks(cache_view<C> cache, const float* workspace, write<A> out) {
  const std::int64_t row = cache.first_row + blockIdx.x;
  const std::int64_t head = blockIdx.y;
  const int head_dim = static_cast<int>(cache.shape.head_dim);
  const int d = threadIdx.x;
  if (d >= head_dim) return;
  A& to = out.data()[(row * cache.shape.heads + head) * head_dim + d];
  const std::int64_t length = cache.length(row);
  if (length == 0) {
    to = narrow<A>(0.0f);
    return;
  }
  const int chunks = static_cast<int>((length + chunk - 1) / chunk);
  const int stride = head_dim + 2;
  const float* partial = partial_of(workspace, blockIdx.x, head, 0, cache.shape);
  float top = partial[head_dim];
#pragma unroll 4
  for (int c = 1; c < chunks; ++c) top = fmaxf(top, partial[std::int64_t{c} * stride + head_dim]);
  float sum = 0.0f;
  float total = 0.0f;
#pragma unroll 4
  for (int c = 0; c < chunks; ++c) {
    const float* of_chunk = partial + std::int64_t{c} * stride;
    const float fade = math::exp(of_chunk[head_dim] - top);
    sum = fmaf(of_chunk[d], fade, sum);
    total = fmaf(of_chunk[head_dim + 1], fade, total);
  }
  to = narrow<A>(sum / total);
}

template <bool Aligned, class A, class C>
__global__ void __launch_bounds__(threads)
    append_grid(read<A> k, read<A> v, write<C> keys, write<C> values, cache_view<C> cache) {
  const std::int64_t row = blockIdx.x;
  const std::int64_t width = cache.shape.kv_heads * cache.shape.head_dim;
  const std::int64_t at = (std::int64_t{blockIdx.y} * threads + threadIdx.x) * 8;
  if (at >= width || cache.length(row) == 0) return;
  const std::int64_t to = cache.offset(row, at / cache.shape.head_dim) +
                          cache.positions.data()[row] * cache.shape.head_dim +
                          at % cache.shape.head_dim;
  float eight[8];
  load_eight<Aligned>(k.data() + row * width, at, width, eight);
  store_eight<Aligned>(keys.data() + to, 0, 8, eight);
  load_eight<Aligned>(v.data() + row * width, at, width, eight);
  store_eight<Aligned>(values.data() + to, 0, 8, eight);
}

// Lanes that read one key: 16 bytes each, a power of two, at most a warp.
int team_of(std::int64_t head_bytes) {
  int team = 1;
  while (team < 32 && team * 16 < head_bytes) team *= 2;
  return team;
}

}  // namespace

template <class A, class C>
void cache_append_cuda(cuda_call& on, read<A> k, read<A> v, read<std::int32_t> slots,
                       read<std::int32_t> positions, write<C> keys, write<C> values,
                       attention_shape shape) {
  const std::int64_t there = cache_slots("cache_append", keys.size(), values.size(), slots.size(),
                                         positions.size(), shape);
  const std::int64_t width = shape.kv_heads * shape.head_dim;
  need_elements("cache_append", "k", k.size(), slots.size() * static_cast<std::size_t>(width));
  need_elements("cache_append", "v", v.size(), k.size());
  if (slots.size() == 0) return;
  const dim3 blocks{static_cast<unsigned>(slots.size()),
                    static_cast<unsigned>((width + threads * 8 - 1) / (threads * 8))};
  const bool eights = in_eights(width, {k.data(), v.data(), keys.data(), values.data()});
  const auto grid = eights ? &append_grid<true, A, C> : &append_grid<false, A, C>;
  const cache_view<C> cache{read<C>{view<const C>{keys}},
                            read<C>{view<const C>{values}},
                            slots,
                            positions,
                            shape,
                            there,
                            0};
  grid<<<blocks, threads, 0, on.stream()>>>(k, v, keys, values, cache);
}

template <class A, class C>
void attention_cuda(cuda_call& on, read<A> q, read<C> keys, read<C> values,
                    read<std::int32_t> slots, read<std::int32_t> positions, write<A> out,
                    attention_shape shape) {
  const std::int64_t there =
      cache_slots("attention", keys.size(), values.size(), slots.size(), positions.size(), shape);
  const auto m = static_cast<std::int64_t>(slots.size());
  need_elements("attention", "q", q.size(),
                static_cast<std::size_t>(m * shape.heads * shape.head_dim));
  need_elements("attention", "out", out.size(), q.size());
  if (!in_eights(shape.head_dim, {keys.data(), values.data()})) {
    throw usage_error{"attention: on CUDA keys and values begin at multiples of 16 bytes"};
  }

  auto* workspace = reinterpret_cast<float*>(on.workspace().data());
  const int team = team_of(shape.head_dim * static_cast<std::int64_t>(sizeof(C)));
  const float scale = 1.0f / math::sqrt(static_cast<float>(shape.head_dim));
  const std::int64_t group = shape.heads / shape.kv_heads;
  const auto attend = group == 1   ? &attend_chunk<1, A, C>
                      : group == 2 ? &attend_chunk<2, A, C>
                      : group <= 4 ? &attend_chunk<4, A, C>
                                   : &attend_chunk<8, A, C>;
  const auto chunks = static_cast<unsigned>((shape.capacity + chunk - 1) / chunk);
  const auto lanes = static_cast<unsigned>((shape.head_dim + 31) / 32 * 32);
  const std::int64_t pass_rows = attention_pass_rows(m, shape);
  for (std::int64_t first = 0; first < m; first += pass_rows) {
    const auto rows = static_cast<unsigned>(std::min(pass_rows, m - first));
    const cache_view<C> cache{keys, values, slots, positions, shape, there, first};
    const dim3 every_chunk{rows, static_cast<unsigned>(shape.kv_heads), chunks};
    attend<<<every_chunk, threads, 0, on.stream()>>>(q, cache, workspace, team, scale);
    const dim3 every_head{rows, static_cast<unsigned>(shape.heads)};
    combine_chunks<A, C><<<every_head, lanes, 0, on.stream()>>>(cache, workspace, out);
  }
}

template void cache_append_cuda(cuda_call&, read<float>, read<float>, read<std::int32_t>,
                                read<std::int32_t>, write<float>, write<float>, attention_shape);
template void cache_append_cuda(cuda_call&, read<float>, read<float>, read<std::int32_t>,
                                read<std::int32_t>, write<bf16>, write<bf16>, attention_shape);
template void cache_append_cuda(cuda_call&, read<bf16>, read<bf16>, read<std::int32_t>,
                                read<std::int32_t>, write<bf16>, write<bf16>, attention_shape);
template void attention_cuda(cuda_call&, read<float>, read<float>, read<float>, read<std::int32_t>,
                             read<std::int32_t>, write<float>, attention_shape);
template void attention_cuda(cuda_call&, read<float>, read<bf16>, read<bf16>, read<std::int32_t>,
                             read<std::int32_t>, write<float>, attention_shape);
template void attention_cuda(cuda_call&, read<bf16>, read<bf16>, read<bf16>, read<std::int32_t>,
                             read<std::int32_t>, write<bf16>, attention_shape);

}  // namespace reprise::REPRISE_BODIES::ops
