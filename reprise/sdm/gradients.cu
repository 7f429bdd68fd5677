// The gradients of weights, decays, values and strengths on CUDA: products of rows over tiles of 32
// by 32, a thread or a warp for each run of events, a warp for each token.
#include <algorithm>
#include <initializer_list>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/slot_sum.cuh"
#include "reprise/sdm/event_runs.cuh"
#include "reprise/sdm/gradient_sizes.hpp"
#include "reprise/sdm/gradients.hpp"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

bool lie_on_16_bytes(std::initializer_list<const float*> arrays) {
  return std::all_of(arrays.begin(), arrays.end(), [](const float* array) {
    return reinterpret_cast<std::uintptr_t>(array) % 16 == 0;
  });
}

// Products. Both need the deltas of a tile's columns, so a block makes both tiles: a thread 4 by 4
// sums of each. Columns of the memory come in slabs of 16, the next one loaded into registers while
// this one is multiplied. Every operation is rounded on its own, as on the CPU: at T = 8192, C =
// 128, D = 768 that is 2e9 of them, no less than 70 us of an H200.
constexpr int tile = 32;
constexpr int slab = 16;
constexpr std::int64_t part = 64;
constexpr int tile_threads = 64;
constexpr int line_stride = tile + 4;
static_assert(part % slab == 0 && slab * tile == 8 * tile_threads);

struct product_arrays {
  const float* dy;
  const float* m;
  const float* errors;
  const float* beta;
  float* of_readings;
  float* of_errors;
  sdm_sizes sizes;
};

// What a thread brings of one operand: eight neighbouring columns of one row in each slab.
template <bool Aligned>
struct bringer {
  const float* row;  // null: none, zeros
  float coming[8];

  __device__ void fetch(std::int64_t at, std::int64_t width) {
#pragma unroll
    for (int i = 0; i < 8; ++i) coming[i] = 0.0f;
    if (row == nullptr || at >= width) return;
    if constexpr (Aligned) {  // width is a multiple of 4
      const float4 low = *reinterpret_cast<const float4*>(row + at);
      coming[0] = low.x;
      coming[1] = low.y;
      coming[2] = low.z;
      coming[3] = low.w;
      if (at + 4 >= width) return;
      const float4 high = *reinterpret_cast<const float4*>(row + at + 4);
      coming[4] = high.x;
      coming[5] = high.y;
      coming[6] = high.z;
      coming[7] = high.w;
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        if (at + i < width) coming[i] = row[at + i];
      }
    }
  }
};

__device__ inline void load_four(const float* from, float (&to)[4]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  to[0] = four.x;
  to[1] = four.y;
  to[2] = four.z;
  to[3] = four.w;
}

template <bool Aligned>
__global__ void __launch_bounds__(tile_threads)
    products_grid(product_arrays of, std::int64_t across) {
  __shared__ __align__(16) float above[slab][line_stride];   // dy of the tile's rows
  __shared__ __align__(16) float dvs[slab][line_stride];     // beta * m of them
  __shared__ __align__(16) float deltas[slab][line_stride];  // beta * error of its columns
  const sdm_sizes& sizes = of.sizes;
  const std::int64_t chunk = blockIdx.x / (across * across);
  const std::int64_t row = blockIdx.x / across % across * tile;
  const std::int64_t column = blockIdx.x % across * tile;
  const std::int64_t n = chunk % sizes.chunks();
  const std::int64_t tokens = sizes.tokens_in(n);
  const std::int64_t first_token = chunk / sizes.chunks() * sizes.tokens + n * sizes.chunk;
  float* const readings = of.of_readings + chunk * sizes.chunk * sizes.chunk;
  float* const recalls = of.of_errors + chunk * sizes.chunk * sizes.chunk;

  if (column > row || row >= tokens) {  // every thread
    for (int e = threadIdx.x; e < tile * tile; e += tile_threads) {
      const std::int64_t t = row + e / tile;
      const std::int64_t s = column + e % tile;
      if (t >= sizes.chunk || s >= sizes.chunk) continue;
      readings[t * sizes.chunk + s] = 0.0f;
      recalls[t * sizes.chunk + s] = 0.0f;
    }
    return;
  }

  const int line = threadIdx.x % tile;
  const int first_term = threadIdx.x / tile * 8;
  const bool has_row = row + line < tokens;
  const bool has_column = column + line < tokens;
  const std::int64_t row_token = first_token + row + line;
  const std::int64_t column_token = first_token + column + line;
  const float row_beta = has_row ? of.beta[row_token] : 0.0f;
  const float column_beta = has_column ? of.beta[column_token] : 0.0f;
  bringer<Aligned> of_dy{has_row ? of.dy + row_token * sizes.width : nullptr, {}};
  bringer<Aligned> of_m{has_row ? of.m + row_token * sizes.width : nullptr, {}};
  bringer<Aligned> of_error{has_column ? of.errors + column_token * sizes.width : nullptr, {}};
  of_dy.fetch(first_term, sizes.width);
  of_m.fetch(first_term, sizes.width);
  of_error.fetch(first_term, sizes.width);

  const int my_row = threadIdx.x / 8 * 4;
  const int my_column = threadIdx.x % 8 * 4;
  float reading[4][4] = {};
  float recall[4][4] = {};
  for (std::int64_t begin = 0; begin < sizes.width; begin += part) {
    const std::int64_t end = min(begin + part, sizes.width);
    float reading_part[4][4] = {};
    float recall_part[4][4] = {};
    for (std::int64_t at = begin; at < end; at += slab) {
      __syncthreads();  // the last slab is not needed any more
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        above[first_term + i][line] = of_dy.coming[i];
        dvs[first_term + i][line] = math::mul(row_beta, of_m.coming[i]);
        deltas[first_term + i][line] = math::mul(column_beta, of_error.coming[i]);
      }
      __syncthreads();
      of_dy.fetch(at + slab + first_term, sizes.width);
      of_m.fetch(at + slab + first_term, sizes.width);
      of_error.fetch(at + slab + first_term, sizes.width);
#pragma unroll
      for (int l = 0; l < slab; ++l) {  // past the end all are zeros
        float left[4];
        float dv[4];
        float delta[4];
        load_four(&above[l][my_row], left);
        load_four(&dvs[l][my_row], dv);
        load_four(&deltas[l][my_column], delta);
#pragma unroll
        for (int r = 0; r < 4; ++r) {
#pragma unroll
          for (int c = 0; c < 4; ++c) {
            reading_part[r][c] = math::add(reading_part[r][c], math::mul(left[r], delta[c]));
            recall_part[r][c] = math::add(recall_part[r][c], math::mul(dv[r], delta[c]));
          }
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        reading[r][c] = math::add(reading[r][c], reading_part[r][c]);
        recall[r][c] = math::add(recall[r][c], recall_part[r][c]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 4; ++r) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const std::int64_t t = row + my_row + r;
      const std::int64_t s = column + my_column + c;
      if (t >= sizes.chunk || s >= sizes.chunk) continue;
      readings[t * sizes.chunk + s] = t < tokens && s <= t ? reading[r][c] : 0.0f;
      recalls[t * sizes.chunk + s] = t < tokens && s < t ? recall[r][c] : 0.0f;
    }
  }
}

// A warp for each token.
constexpr int token_warps = 8;

struct token_arrays {
  const float* m;
  const float* errors;
  const float* beta;
  const float* dg_by_write;
  float* dv;
  float* dbeta;
  float* dg;
  sdm_sizes sizes;
};

template <bool Aligned>
__global__ void __launch_bounds__(token_warps * 32)
    token_grads_grid(token_arrays of, std::int64_t tokens) {
  const std::int64_t token = std::int64_t{blockIdx.x} * token_warps + threadIdx.x / 32;
  if (token >= tokens) return;  // whole warps leave
  const int lane = threadIdx.x % 32;
  const std::int64_t width = of.sizes.width;
  const float strength = of.beta[token];
  float total = 0.0f;
  for (std::int64_t begin = 0; begin < width; begin += part_columns) {
    const std::int64_t at = begin + lane * lane_columns;
    float sum = 0.0f;
    if (at < width) {
      float ms[8];
      float errors[8];
      ops::load_eight<Aligned>(of.m + token * width, at, width, ms);
      ops::load_eight<Aligned>(of.errors + token * width, at, width, errors);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sum = math::add(sum, math::mul(ms[i], errors[i]));
        ms[i] = math::mul(strength, ms[i]);
      }
      ops::store_eight<Aligned>(of.dv + token * width, at, width, ms);
    }
    total = math::add(total, ops::fold_warp(sum));
  }
  if (lane == 0) of.dbeta[token] = total;

  const float* const decays = of.dg_by_write + token * of.sizes.writes;
  if (of.sizes.decays != 1) {
    for (std::int64_t w = lane; w < of.sizes.writes; w += 32) {
      of.dg[token * of.sizes.writes + w] = decays[w];
    }
    return;
  }
  if (lane != 0) return;
  float sum = 0.0f;
#pragma unroll 8
  for (std::int64_t w = 0; w < of.sizes.writes; ++w) sum = math::add(sum, decays[w]);
  of.dg[token] = sum;
}

}  // namespace

template <class X>
void products_cuda(cuda_call& call, read<X> dy, read<X> m, read<X> errors, read<X> beta,
                   write<X> of_readings, write<X> of_errors, sdm_sizes sizes) {
  need_products(sizes, dy, m, errors, beta, of_readings, of_errors);
  const std::int64_t chunks = sizes.streams * sizes.chunks();
  if (chunks == 0) return;
  const std::int64_t across = ceil_div(sizes.chunk, tile);
  const bool fours = sizes.width % 4 == 0 && lie_on_16_bytes({dy.data(), m.data(), errors.data()});
  const auto grid = fours ? &products_grid<true> : &products_grid<false>;
  grid<<<static_cast<unsigned>(chunks * across * across), tile_threads, 0, call.stream()>>>(
      {dy.data(), m.data(), errors.data(), beta.data(), of_readings.data(), of_errors.data(),
       sizes},
      across);
}

template <class X>
void event_grads_cuda(cuda_call& call, read<std::int32_t> order, read<std::int32_t> place,
                      read<std::int32_t> runs, read<X> k_val, read<X> q_val, read<double> level,
                      read<X> of_state, read<X> of_cotangent, read<X> of_both, read<X> of_readings,
                      read<X> of_errors, write<X> dk, write<X> dq, write<X> dg_by_write,
                      sdm_sizes sizes) {
  need_event_grads(
      sizes, {order.size(), place.size(), runs.size(), k_val.size(), q_val.size(), level.size(),
              of_state.size(), of_cotangent.size(), of_both.size(), of_readings.size(),
              of_errors.size(), dk.size(), dq.size(), dg_by_write.size()});
  const std::int64_t chunks = sizes.streams * sizes.chunks();
  if (chunks == 0) return;
  const std::int64_t warps_of_chunk = ceil_div(sizes.events(), 32);
  const auto blocks = static_cast<unsigned>(ceil_div(chunks * warps_of_chunk, run_warps));
  event_grads_grid<<<blocks, run_warps * 32, 0, call.stream()>>>(
      {order.data(), place.data(), runs.data(), k_val.data(), q_val.data(), level.data(),
       of_state.data(), of_cotangent.data(), of_both.data(), of_readings.data(), of_errors.data(),
       dk.data(), dq.data(), dg_by_write.data(), sizes},
      chunks, warps_of_chunk);
}

template <class X>
void token_grads_cuda(cuda_call& call, read<X> m, read<X> errors, read<X> beta, read<X> dg_by_write,
                      write<X> dv, write<X> dbeta, write<X> dg, sdm_sizes sizes) {
  need_token_grads(sizes, m, errors, beta, dg_by_write, dv, dbeta, dg);
  const std::int64_t tokens = sizes.streams * sizes.tokens;
  if (tokens == 0) return;
  const auto grid = ops::in_eights(sizes.width, {m.data(), errors.data(), dv.data()})
                        ? &token_grads_grid<true>
                        : &token_grads_grid<false>;
  grid<<<static_cast<unsigned>(ceil_div(tokens, token_warps)), token_warps * 32, 0,
         call.stream()>>>({m.data(), errors.data(), beta.data(), dg_by_write.data(), dv.data(),
                           dbeta.data(), dg.data(), sizes},
                          tokens);
}

template void products_cuda(cuda_call&, read<float>, read<float>, read<float>, read<float>,
                            write<float>, write<float>, sdm_sizes);
template void event_grads_cuda(cuda_call&, read<std::int32_t>, read<std::int32_t>,
                               read<std::int32_t>, read<float>, read<float>, read<double>,
                               read<float>, read<float>, read<float>, read<float>, read<float>,
                               write<float>, write<float>, write<float>, sdm_sizes);
template void token_grads_cuda(cuda_call&, read<float>, read<float>, read<float>, read<float>,
                               write<float>, write<float>, write<float>, sdm_sizes);

}  // namespace reprise::REPRISE_BODIES::sdm
