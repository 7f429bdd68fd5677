// rope on CUDA: a block turns up to 16 heads of one row, up to 128 pairs of each.
//
// Floor: x read and written once. The sines cost some 60 double operations a pair; a block computes
// them once for its heads, which is noise where doubles run at full rate (sm_80, sm_90).
#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rope.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int threads = 128;
constexpr int tile = 128;  // pairs
constexpr int heads_per_block = 16;

// The grid is (rows, tiles of pairs, groups of heads).
template <bool Aligned, class A>
__global__ void __launch_bounds__(threads)
    rope_grid(inout<A> x, read<std::int32_t> positions, read<float> inverse_frequencies,
              std::int64_t heads, std::int64_t half) {
  __shared__ float s[tile];
  __shared__ float c[tile];
  const std::int64_t row = blockIdx.x;
  const std::int64_t begin = std::int64_t{blockIdx.y} * tile;
  const int count = static_cast<int>(min(std::int64_t{tile}, half - begin));
  const std::int64_t first_head = std::int64_t{blockIdx.z} * heads_per_block;
  const int group = static_cast<int>(min(std::int64_t{heads_per_block}, heads - first_head));

  for (int i = threadIdx.x; i < count; i += threads) {
    const float position = static_cast<float>(positions.data()[row]);
    math::sincos(math::mul(position, inverse_frequencies.data()[begin + i]), s[i], c[i]);
  }
  __syncthreads();

  const int eights = (count + 7) / 8;
  for (int item = threadIdx.x; item < eights * group; item += threads) {
    const int at = item % eights * 8;
    A* first = x.data() + ((row * heads + first_head + item / eights) * 2 * half + begin);
    A* second = first + half;
    float u[8];
    float v[8];
    load_eight<Aligned>(first, at, count, u);
    load_eight<Aligned>(second, at, count, v);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int pair = Aligned ? at + i : min(at + i, count - 1);  // stays inside s and c
      const float turned = math::sub(math::mul(u[i], c[pair]), math::mul(v[i], s[pair]));
      v[i] = math::add(math::mul(v[i], c[pair]), math::mul(u[i], s[pair]));
      u[i] = turned;
    }
    store_eight<Aligned>(first, at, count, u);
    store_eight<Aligned>(second, at, count, v);
  }
}

}  // namespace

template <class A>
void rope_cuda(cuda_call& call, inout<A> x, read<std::int32_t> positions,
               read<float> inverse_frequencies, std::int64_t heads, std::int64_t head_dim) {
  check_rope(x.size(), positions.size(), inverse_frequencies.size(), heads, head_dim);
  if (positions.size() == 0) return;
  const std::int64_t half = head_dim / 2;
  const dim3 blocks{static_cast<unsigned>(positions.size()),
                    static_cast<unsigned>((half + tile - 1) / tile),
                    static_cast<unsigned>((heads + heads_per_block - 1) / heads_per_block)};
  const auto grid = in_eights(half, {x.data()}) ? &rope_grid<true, A> : &rope_grid<false, A>;
  grid<<<blocks, threads, 0, call.stream()>>>(x, positions, inverse_frequencies, heads, half);
}

template void rope_cuda(cuda_call&, inout<float>, read<std::int32_t>, read<float>, std::int64_t,
                        std::int64_t);
template void rope_cuda(cuda_call&, inout<bf16>, read<std::int32_t>, read<float>, std::int64_t,
                        std::int64_t);

}  // namespace reprise::REPRISE_BODIES::ops
