// sample on CUDA: one block of 1024 threads per row; all sums are integers, so any order will do.
//
// A row is read once for its greatest logit, three times for the edge of the nucleus (not at all
// when everything is kept) and once for the draw, from L2: one SM takes some 6 us for each reading
// of 151,936 logits. The first of the three also computes every weight, some 40 instructions each,
// 26 us more; the later ones skip, by a bound on e^x, the logits that cannot matter.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/math.hpp"
#include "reprise/ops/row_block.cuh"
#include "reprise/ops/sample.hpp"
#include "reprise/ops/sample_rules.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

constexpr int most_bins = 1 << first_digit_bits;

// From a logit to its key.
struct weigher {
  float top;
  float inverse;  // of the temperature

  // no_weight, too, for exponents below `lowest`.
  __device__ weight_key key(float logit, float lowest) const {
    const float x = math::mul(math::sub(logit, top), inverse);
    return x >= lowest ? key_of(math::exp(x)) : no_weight;
  }
};

// An exponent below which no key reaches `least`, with a margin far beyond the error of __logf.
__device__ float lowest_exponent(weight_key least) {
  const std::uint32_t bits = static_cast<std::uint32_t>(max(least, 0)) + bits_of_smallest;
  return __logf(__uint_as_float(bits)) - 0.001f;
}

struct scan_result {
  std::uint64_t before;
  std::uint64_t total;
};

template <class T>
__device__ T warp_running_sum(T value) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const T below = __shfl_up_sync(whole_warp, value, step);
    if (lane >= step) value += below;
  }
  return value;
}

// The sum over the threads before this one, and over all. Callers sync between two calls.
__device__ scan_result block_scan(std::uint64_t value) {
  __shared__ std::uint64_t of_warp[row_warps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const std::uint64_t running = warp_running_sum(value);
  if (lane == 31) of_warp[warp] = running;
  __syncthreads();
  const std::uint64_t warps = warp_running_sum(of_warp[lane]);
  const std::uint64_t before_warp = __shfl_sync(whole_warp, warps, max(warp - 1, 0));
  return {(warp == 0 ? 0 : before_warp) + running - value, __shfl_sync(whole_warp, warps, 31)};
}

// Sums of weights by digit. Native shared atomics are 32 bits wide, so the 24-bit fractions are
// summed in two halves of 12: at most 2^20 logits keep each below 2^32. All keys of a bin share an
// exponent.
struct digit_bins {
  std::uint32_t low[most_bins];
  std::uint32_t high[most_bins];

  __device__ void clear(int count) {
    for (int i = threadIdx.x; i < count; i += row_threads) low[i] = high[i] = 0;
  }
  __device__ void add(int bin, weight_key key) {
    const std::uint32_t fraction = fraction_of(key);
    atomicAdd(&low[bin], fraction & 0xfffu);
    atomicAdd(&high[bin], fraction >> 12);
  }
  __device__ std::uint64_t sum(int bin, std::uint32_t exponent) const {
    return weight_of_fractions(low[bin] + (static_cast<std::uint64_t>(high[bin]) << 12), exponent);
  }
};

// Digit by digit from the top: the digit at which the sum of heavier weights passes the share.
__device__ nucleus find_nucleus(const weigher& weigh, const float* row, std::int64_t width,
                                float top_p) {
  __shared__ digit_bins bins;
  __shared__ int found_digit;
  __shared__ std::uint64_t found_above;
  weight_key prefix = 0;
  std::uint64_t above = 0;
  std::uint64_t need = 0;
  for (int digit = 0; digit < digit_count; ++digit) {
    const int bits = digit_bits(digit);
    const int shift = digit_shift(digit);
    const int count = 1 << bits;
    bins.clear(count);
    __syncthreads();
    const float lowest = lowest_exponent(prefix << (shift + bits));
    each_logit(row, width, [&](std::int32_t, float logit) {
      const weight_key key = weigh.key(logit, lowest);
      if (key >= 0 && key >> (shift + bits) == prefix) bins.add((key >> shift) & (count - 1), key);
    });
    __syncthreads();

    // Each thread has `own` neighbouring bins, the first thread the greatest.
    const int own = max(count / row_threads, 1);
    const int greatest_bin = count - 1 - static_cast<int>(threadIdx.x) * own;
    const auto weight_of_bin = [&](int bin) {
      const auto key = static_cast<std::uint32_t>(((prefix << bits) | bin) << shift);
      return bins.sum(bin, key >> key_fraction_bits);
    };
    std::uint64_t sum = 0;
    for (int i = 0; i < own && greatest_bin - i >= 0; ++i) sum += weight_of_bin(greatest_bin - i);
    const scan_result scan = block_scan(sum);
    if (digit == 0) need = share_of(scan.total, top_p);
    std::uint64_t heavier = above + scan.before;
    if (heavier < need && need <= heavier + sum) {  // true in one thread
      int bin = greatest_bin;
      while (heavier + weight_of_bin(bin) < need) heavier += weight_of_bin(bin--);
      found_digit = bin;
      found_above = heavier;
    }
    __syncthreads();
    prefix = (prefix << bits) | found_digit;
    above = found_above;
  }
  return nucleus_at(prefix, above, need);
}

// A stretch of a row in which the answer lies, and what is left to find it by.
struct stretch {
  std::int64_t first;
  std::int64_t last;
  std::uint32_t ties;    // tokens at the edge that are kept from `first` on
  std::uint64_t target;  // that the running sum from `first` on is to exceed
};

// Lane i has the sum of weights above the edge, and the number at it, of the ith part of a stretch.
// Finds the part in which the running sum exceeds the target, and moves ties and target to its
// beginning. The first time, the sum of all parts makes the target of the random `word`.
__device__ int choose_part(stretch& in, std::uint64_t over, std::uint32_t at_edge,
                           std::uint64_t edge_weight, bool first_time, std::uint64_t word) {
  const std::uint32_t ties_before = warp_running_sum(at_edge) - at_edge;
  const std::uint32_t ties_left = in.ties > ties_before ? in.ties - ties_before : 0;
  const std::uint64_t kept = over + min(at_edge, ties_left) * edge_weight;
  const std::uint64_t running = warp_running_sum(kept);
  if (first_time) in.target = multiply_high(word, __shfl_sync(whole_warp, running, 31));
  const unsigned beyond = __ballot_sync(whole_warp, running > in.target);
  const int part = __ffs(static_cast<int>(beyond)) - 1;  // the target is below the sum of all
  in.target -= __shfl_sync(whole_warp, running - kept, part);
  in.ties = __shfl_sync(whole_warp, ties_left, part);
  return part;
}

// The first token at which the running sum of kept weights exceeds its target: each round leaves
// the part, of 32, in which it does, until every lane has one token.
__device__ std::int32_t draw(const weigher& weigh, const float* row, std::int64_t width,
                             const nucleus& kept, std::uint64_t word) {
  __shared__ std::uint64_t over_of[row_warps];
  __shared__ std::uint32_t ties_of[row_warps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const float lowest = lowest_exponent(kept.edge);
  const std::uint64_t edge_weight = weight_of(kept.edge);
  stretch in{0, width, kept.ties, 0};
  bool first_time = true;
  while (in.last - in.first > 32) {
    const std::int64_t part = ((in.last - in.first + 31) / 32 + 31) / 32 * 32;
    const std::int64_t begin = in.first + warp * part;
    const std::int64_t end = min(begin + part, in.last);
    std::uint64_t over = 0;
    std::uint32_t ties = 0;
#pragma unroll 4
    for (std::int64_t i = begin + lane; i < end; i += 32) {
      const weight_key key = weigh.key(row[i], lowest);
      if (key > kept.edge) over += weight_of(key);
      if (key == kept.edge) ++ties;
    }
    over = __shfl_sync(whole_warp, warp_running_sum(over), 31);
    ties = __shfl_sync(whole_warp, warp_running_sum(ties), 31);
    if (lane == 0) {
      over_of[warp] = over;
      ties_of[warp] = ties;
    }
    __syncthreads();
    const int chosen = choose_part(in, over_of[lane], ties_of[lane], edge_weight, first_time, word);
    first_time = false;
    in.first += chosen * part;
    in.last = min(in.first + part, in.last);
    __syncthreads();  // before the next round writes what this one has read
  }
  const std::int64_t mine = in.first + lane;
  const weight_key key = mine < in.last ? weigh.key(row[mine], lowest) : no_weight;
  const std::uint64_t over = key > kept.edge ? weight_of(key) : 0;
  const std::uint32_t ties = key == kept.edge ? 1 : 0;
  return static_cast<std::int32_t>(in.first +
                                   choose_part(in, over, ties, edge_weight, first_time, word));
}

__global__ void __launch_bounds__(row_threads)
    sample_grid(read<float> logits, read<float> temperatures, read<float> top_ps,
                read<std::uint64_t> seeds, read<std::uint64_t> counters, write<std::int32_t> out,
                std::int64_t width) {
  const unsigned at = blockIdx.x;
  const float* row = logits.data() + at * width;
  const greatest top = block_greatest(row, width);
  const float temperature = temperatures.data()[at];
  const float inverse = math::div(1.0f, temperature);
  std::int32_t token = token_of(top);
  if (is_drawn(top, temperature, inverse)) {  // the same in all threads of the block
    const weigher weigh{top.value, inverse};
    const float top_p = top_ps.data()[at];
    const nucleus kept = keeps_all(top_p) ? nucleus{} : find_nucleus(weigh, row, width, top_p);
    token = draw(weigh, row, width, kept, random_word(seeds.data()[at], counters.data()[at]));
  }
  if (threadIdx.x == 0) out.data()[at] = token;
}

}  // namespace

void sample_cuda(cuda_call& call, read<float> logits, read<float> temperatures, read<float> top_ps,
                 read<std::uint64_t> seeds, read<std::uint64_t> counters, write<std::int32_t> out,
                 std::int64_t width) {
  const std::int64_t rows = sample_rows({logits.size(), temperatures.size(), top_ps.size(),
                                         seeds.size(), counters.size(), out.size()},
                                        width);
  if (rows == 0) return;
  sample_grid<<<static_cast<unsigned>(rows), row_threads, 0, call.stream()>>>(
      logits, temperatures, top_ps, seeds, counters, out, width);
}

}  // namespace reprise::REPRISE_BODIES::ops
