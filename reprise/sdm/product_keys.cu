// Product keys on CUDA: a warp for each row, which holds a half's keys in its registers.
//
// product_key_top sorts each half there, n keys padded to 2, 8 or 32 a lane, and keeps the best in
// shared memory. Sums of two ranks fall as either rank rises, so that those at or above a bound are
// a staircase: a lane finds where it ends in up to four rows of it by bisection, and the bound that
// the k best are at or above is itself found by bisection over the bits of a float. Then the equal
// ones are told apart by ranks, and the slots sorted. Some 6,000 instructions a row at n = 192 and
// k = 64, of which a third are the two sorts; a row is read once and then, its chosen keys, again.
//
// product_key_grad: a lane adds up every thirty-second key of both halves, over the chosen slots in
// shared memory.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/slot_sum.cuh"
#include "reprise/sdm/product_keys.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr int warps = 4;
constexpr unsigned all_lanes = 0xffffffffu;
constexpr int most_kept = static_cast<int>(most_chosen_slots);
constexpr int lane_rows = most_kept / 32;  // of the staircase, and of what is chosen

// Elements e of a warp, e % PerLane of lane e / PerLane, from the greatest to the least.
template <int PerLane, class Key>
__device__ void sort_descending(Key (&keys)[PerLane], int lane) {
  constexpr int levels = 5 + (PerLane == 2 ? 1 : PerLane == 4 ? 2 : PerLane == 8 ? 3 : 5);
  static_assert(1 << levels == 32 * PerLane);
#pragma unroll
  for (int level = 1; level <= levels; ++level) {
#pragma unroll
    for (int step = level - 1; step >= 0; --step) {
      const int stride = 1 << step;
      if (stride >= PerLane) {
        const int across = stride / PerLane;
        const bool falls = ((lane * PerLane) >> level & 1) == 0;
        const bool takes_greater = falls == ((lane & across) == 0);
#pragma unroll
        for (int r = 0; r < PerLane; ++r) {
          const Key other = __shfl_xor_sync(all_lanes, keys[r], across);
          if ((other > keys[r]) == takes_greater) keys[r] = other;
        }
      } else {
#pragma unroll
        for (int r = 0; r < PerLane; ++r) {
          if ((r & stride) != 0) continue;
          const bool falls = ((lane * PerLane + r) >> level & 1) == 0;
          const Key one = keys[r];
          const Key other = keys[r + stride];
          const bool swaps = (one < other) == falls;
          keys[r] = swaps ? other : one;
          keys[r + stride] = swaps ? one : other;
        }
      }
    }
  }
}

// Of one row: the kept keys of both halves by rank, and what is chosen.
struct row_room {
  float score[2][most_kept];
  std::int32_t key[2][most_kept];
  std::int32_t slot[most_kept];
};

template <int PerLane>
__device__ void rank_half(const float* scores, int n, int kept, int lane, float* score,
                          std::int32_t* key) {
  std::uint64_t keys[PerLane];
#pragma unroll
  for (int r = 0; r < PerLane; ++r) {
    const int at = r * 32 + lane;
    keys[r] = 0;  // behind all that are there
    if (at < n) {
      keys[r] =
          std::uint64_t{order_of(scores[at])} << 32 | (0xffffffffu - static_cast<unsigned>(at));
    }
  }
  sort_descending(keys, lane);
#pragma unroll
  for (int r = 0; r < PerLane; ++r) {
    const int rank = lane * PerLane + r;
    if (rank >= kept) continue;
    score[rank] = score_at(static_cast<std::uint32_t>(keys[r] >> 32));
    key[rank] = static_cast<std::int32_t>(0xffffffffu - static_cast<std::uint32_t>(keys[r]));
  }
}

// What is chosen of the rows of the staircase that a lane has, those of first ranks lane, lane + 32
// and so on: second ranks below `above`, and those from `from` to `within`.
struct stairs {
  int above[lane_rows];
  int within[lane_rows];
  int from[lane_rows];
};

__device__ __forceinline__ int count_of(const int (&rows)[lane_rows]) {
  int mine = 0;
#pragma unroll
  for (int q = 0; q < lane_rows; ++q) mine += rows[q];
  return __reduce_add_sync(all_lanes, mine);
}

// The first second rank in [low, high) whose sum is below `bound`, else `high`.
__device__ int stair_end(float score, const float* second, std::uint32_t bound, int low, int high) {
  while (low < high) {
    const int middle = (low + high) / 2;
    if (order_of(math::add(score, second[middle])) >= bound) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Finds the k best but for ties: on return all sums below `above` are chosen, and those from there
// to `within` are equal; of them k less the former are to be chosen, all when from == above.
__device__ __forceinline__ int climb(const row_room& at, int kept, int k, int diagonal, int lane,
                                     stairs& steps) {
  const float* const second = at.score[1];
  const auto sum_at = [&](int i, int j) { return order_of(math::add(at.score[0][i], second[j])); };
  std::uint32_t low = sum_at(diagonal, diagonal);  // k sums at least are not below it
  std::uint32_t high = sum_at(0, 0) + 1;           // all are
  float score[lane_rows];
#pragma unroll
  for (int q = 0; q < lane_rows; ++q) {
    const int i = q * 32 + lane;
    steps.above[q] = 0;
    steps.within[q] = 0;
    score[q] = 0.0f;
    if (i >= kept) continue;
    score[q] = at.score[0][i];
    steps.within[q] = stair_end(score[q], second, low, 0, kept);
  }
  int total = count_of(steps.within);
  while (total != k && high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    int ends[lane_rows];
#pragma unroll
    for (int q = 0; q < lane_rows; ++q) {
      ends[q] = stair_end(score[q], second, middle, steps.above[q], steps.within[q]);
    }
    const int reached = count_of(ends);
    const bool enough = reached >= k;
    if (enough) {
      low = middle;
      total = reached;
    } else {
      high = middle;
    }
#pragma unroll
    for (int q = 0; q < lane_rows; ++q) {
      steps.within[q] = enough ? ends[q] : steps.within[q];
      steps.above[q] = enough ? steps.above[q] : ends[q];
    }
  }
  if (total == k) {
#pragma unroll
    for (int q = 0; q < lane_rows; ++q) steps.above[q] = steps.within[q];
  }
#pragma unroll
  for (int q = 0; q < lane_rows; ++q) steps.from[q] = steps.within[q];
  return k - count_of(steps.above);
}

// Of the equal sums, those whose second rank makes a sum of ranks of `least` at least.
__device__ __forceinline__ int tie_from(const stairs& steps, int q, int lane, int least) {
  return min(max(least - (q * 32 + lane), steps.above[q]), steps.within[q]);
}

// Chooses `need` of the equal sums, which are more or as many, 1 at least.
__device__ __forceinline__ void break_ties(int kept, int need, int lane, stairs& steps) {
  int low = 0;              // as many as are needed have a sum of ranks of this at least
  int high = 2 * kept - 1;  // fewer have this
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    int taken[lane_rows];
#pragma unroll
    for (int q = 0; q < lane_rows; ++q) {
      taken[q] = steps.within[q] - tie_from(steps, q, lane, middle);
    }
    if (count_of(taken) >= need) {
      low = middle;
    } else {
      high = middle;
    }
  }
  int taken[lane_rows];
#pragma unroll
  for (int q = 0; q < lane_rows; ++q) {
    steps.from[q] = tie_from(steps, q, lane, high);
    taken[q] = steps.within[q] - steps.from[q];
  }
  int left = need - count_of(taken);
  // Of the sum of ranks `low` a row has one at most; the greatest first ranks are taken.
#pragma unroll
  for (int q = lane_rows - 1; q >= 0; --q) {
    const bool has = tie_from(steps, q, lane, low) < steps.from[q];
    const unsigned having = __ballot_sync(all_lanes, has);
    const unsigned greater = lane == 31 ? 0u : having >> (lane + 1);
    if (has && __popc(greater) < left) --steps.from[q];
    left -= min(left, __popc(having));
  }
}

// The chosen slots of a row, in any order.
__device__ __forceinline__ void list_slots(const stairs& steps, int n, int lane, row_room& at) {
  int mine = 0;
#pragma unroll
  for (int q = 0; q < lane_rows; ++q) mine += steps.above[q] + steps.within[q] - steps.from[q];
  int place = mine;
#pragma unroll
  for (int by = 1; by < 32; by *= 2) {
    const int before = __shfl_up_sync(all_lanes, place, by);
    if (lane >= by) place += before;
  }
  place -= mine;
#pragma unroll
  for (int q = 0; q < lane_rows; ++q) {
    if (steps.above[q] == 0 && steps.from[q] == steps.within[q]) continue;
    const int of_row = at.key[0][q * 32 + lane] * n;
    for (int j = 0; j < steps.above[q]; ++j) at.slot[place++] = of_row + at.key[1][j];
    for (int j = steps.from[q]; j < steps.within[q]; ++j) at.slot[place++] = of_row + at.key[1][j];
  }
}

__device__ void sort_slots(int k, int lane, row_room& at) {
  std::uint32_t keys[lane_rows];
#pragma unroll
  for (int r = 0; r < lane_rows; ++r) {
    const int place = r * 32 + lane;
    keys[r] = place < k ? ~static_cast<std::uint32_t>(at.slot[place]) : 0u;
  }
  sort_descending(keys, lane);
  __syncwarp();
#pragma unroll
  for (int r = 0; r < lane_rows; ++r) {
    const int place = lane * lane_rows + r;
    if (place < k) at.slot[place] = static_cast<std::int32_t>(~keys[r]);
  }
  __syncwarp();
}

__device__ float greater_of(float top, float score) {  // a NaN never is
  return score > top ? score : top;
}

// The softmax over the chosen slots, whose scores are read once more, as they are.
__device__ void write_chosen(const float* first, const float* second, std::int32_t bank, int n,
                             int k, int lane, const row_room& at, std::int32_t* idx, float* val) {
  float score[lane_rows];
  float top = -__builtin_huge_valf();
#pragma unroll
  for (int t = 0; t < lane_rows; ++t) {
    const int place = t * 32 + lane;
    if (place >= k) continue;
    const int slot = at.slot[place];
    idx[place] = bank + slot;
    score[t] = math::add(first[slot / n], second[slot % n]);
    top = greater_of(top, score[t]);
  }
#pragma unroll
  for (int half = 16; half > 0; half /= 2) {
    top = greater_of(top, __shfl_xor_sync(all_lanes, top, half));
  }
  float sum = 0.0f;
#pragma unroll
  for (int t = 0; t < lane_rows; ++t) {
    if (t * 32 + lane >= k) continue;
    score[t] = math::exp(math::sub(score[t], top));
    sum = math::add(sum, score[t]);
  }
  sum = ops::fold_warp(sum);
#pragma unroll
  for (int t = 0; t < lane_rows; ++t) {
    const int place = t * 32 + lane;
    if (place < k) val[place] = math::div(score[t], sum);
  }
}

template <int PerLane>
__global__ void __launch_bounds__(warps * 32)
    top_grid(read<float> first, read<float> second, write<std::int32_t> idx, write<float> val,
             std::int64_t rows, int n, int k, int diagonal, std::int64_t tokens) {
  __shared__ row_room rooms[warps];
  const int lane = threadIdx.x % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  if (row >= rows) return;  // whole warps leave
  row_room& at = rooms[threadIdx.x / 32];
  const int kept = min(n, k);
  const float* const firsts = first.data() + row * n;
  const float* const seconds = second.data() + row * n;
#pragma unroll 1
  for (int half = 0; half < 2; ++half) {
    rank_half<PerLane>(half == 0 ? firsts : seconds, n, kept, lane, at.score[half], at.key[half]);
  }
  __syncwarp();
  stairs steps;
  const int need = climb(at, kept, k, diagonal, lane, steps);
  if (need > 0) break_ties(kept, need, lane, steps);
  list_slots(steps, n, lane, at);
  __syncwarp();
  sort_slots(k, lane, at);
  const auto bank = static_cast<std::int32_t>(row / tokens * n * n);
  write_chosen(firsts, seconds, bank, n, k, lane, at, idx.data() + row * k, val.data() + row * k);
}

struct chosen_room {
  std::int32_t first[most_kept];  // -1: of no slot
  std::int32_t second[most_kept];
  float ds[most_kept];
};

__global__ void __launch_bounds__(warps * 32)
    grad_grid(read<std::int32_t> idx, read<float> val, read<float> dval, write<float> dfirst,
              write<float> dsecond, std::int64_t rows, int n, int k) {
  __shared__ chosen_room rooms[warps];
  const int lane = threadIdx.x % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  if (row >= rows) return;  // whole warps leave
  chosen_room& at = rooms[threadIdx.x / 32];
  float weight[lane_rows];
  float above[lane_rows];
  float along = 0.0f;
#pragma unroll
  for (int t = 0; t < lane_rows; ++t) {
    const int place = t * 32 + lane;
    if (place >= k) continue;
    weight[t] = val.data()[row * k + place];
    above[t] = dval.data()[row * k + place];
    along = math::add(along, math::mul(weight[t], above[t]));
  }
  along = ops::fold_warp(along);
#pragma unroll
  for (int t = 0; t < lane_rows; ++t) {
    const int place = t * 32 + lane;
    if (place >= k) continue;
    const std::int32_t chosen = idx.data()[row * k + place];
    const int slot = chosen < 0 ? -1 : chosen % (n * n);
    at.first[place] = chosen < 0 ? -1 : slot / n;
    at.second[place] = chosen < 0 ? -1 : slot % n;
    at.ds[place] = math::mul(weight[t], math::sub(above[t], along));
  }
  __syncwarp();
  for (int column = lane; column < n; column += 32) {
    float of_first = 0.0f;
    float of_second = 0.0f;
#pragma unroll 4
    for (int l = 0; l < k; ++l) {
      const float ds = at.ds[l];
      if (at.first[l] == column) of_first = math::add(of_first, ds);
      if (at.second[l] == column) of_second = math::add(of_second, ds);
    }
    dfirst.data()[row * n + column] = of_first;
    dsecond.data()[row * n + column] = of_second;
  }
}

unsigned blocks_for(std::int64_t rows) {
  return static_cast<unsigned>((rows + warps - 1) / warps);
}

}  // namespace

void product_key_top_cuda(cuda_call& call, read<float> first, read<float> second,
                          write<std::int32_t> idx, write<float> val, std::int64_t n, std::int64_t k,
                          std::int64_t tokens) {
  const std::int64_t rows =
      product_key_top_rows(first.size(), second.size(), idx.size(), val.size(), n, k, tokens);
  if (rows == 0) return;
  const auto grid = n <= 64 ? &top_grid<2> : n <= 256 ? &top_grid<8> : &top_grid<32>;
  grid<<<blocks_for(rows), warps * 32, 0, call.stream()>>>(
      first, second, idx, val, rows, static_cast<int>(n), static_cast<int>(k),
      static_cast<int>(diagonal_of(k)), tokens);
}

void product_key_grad_cuda(cuda_call& call, read<std::int32_t> idx, read<float> val,
                           read<float> dval, write<float> dfirst, write<float> dsecond,
                           std::int64_t n, std::int64_t k) {
  const std::int64_t rows = product_key_grad_rows(idx.size(), val.size(), dval.size(),
                                                  dfirst.size(), dsecond.size(), n, k);
  if (rows == 0) return;
  grad_grid<<<blocks_for(rows), warps * 32, 0, call.stream()>>>(
      idx, val, dval, dfirst, dsecond, rows, static_cast<int>(n), static_cast<int>(k));
}

}  // namespace reprise::REPRISE_BODIES::sdm
