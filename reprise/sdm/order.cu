// sdm_order on CUDA: a block sorts the events of one chunk in its registers and shared memory.
//
// A key is the slot, then the event: 32 bits where both fit, else 64. No two are equal, so that the
// order is that of the CPU's sort. The sort is bitonic: keys lie in increasing order thread by
// thread, so that short strides stay in a thread's registers, longer ones take shuffles in a warp,
// and only those from warp to warp go through shared memory (15 of 91 steps for 8,192 keys). Runs
// and the rows they save are then counted in bits, 32 to a word.
//
// A block takes 4 or 8 bytes of dynamic shared memory a key, beside 8 KiB: over 8,192 events of
// more than 2^18 slots need a card that gives a block 136 KiB.
#include "reprise/cuda/call.cuh"
#include "reprise/sdm/order.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr int most_threads = 1024;
constexpr unsigned whole_warp = 0xffffffffu;

// What is behind every key.
template <class Key>
__device__ constexpr Key no_key() {
  return ~Key{0};
}

template <class Key>
__device__ Key kept(Key mine, Key other, bool smaller) {
  return (mine < other) == smaller ? mine : other;
}

template <class Key>
__device__ void put_in_order(Key& low, Key& high) {
  const Key before = low;
  low = kept(before, high, true);
  high = kept(before, high, false);
}

// Within a thread: steps of strides First, First / 2, and so on to 1.
template <int First, class Key, int Each>
__device__ void merge_own(Key (&keys)[Each]) {
  if constexpr (First > 0) {
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      if ((r & First) == 0) put_in_order(keys[r], keys[r + First]);
    }
    merge_own<First / 2>(keys);
  }
}

template <int Size, class Key, int Each>
__device__ void sort_own(Key (&keys)[Each]) {
  if constexpr (Size <= Each) {
#pragma unroll
    for (int r = 0; r < Each; ++r) {
      if ((r & (Size / 2)) == 0) put_in_order(keys[r], keys[r ^ (Size - 1)]);
    }
    merge_own<Size / 4>(keys);
    sort_own<2 * Size>(keys);
  }
}

// A step between this thread and the one whose number differs by the bits of `by`; mirrored, the
// first key of one meets the last of the other. A thread that does not exist holds what is behind
// every key, which changes nothing.
template <bool Mirrored, class Key, int Each>
__device__ void step_across(Key (&keys)[Each], Key* shared, unsigned by) {
  const unsigned other = threadIdx.x ^ by;
  const bool smaller = threadIdx.x < other;
  if (by < 32) {  // blocks are whole warps
#pragma unroll
    for (int r = 0; r < Each / 2; ++r) {
      constexpr int last = Each - 1;
      const Key low = __shfl_xor_sync(whole_warp, keys[r], by);
      const Key high = __shfl_xor_sync(whole_warp, keys[last - r], by);
      keys[r] = kept(keys[r], Mirrored ? high : low, smaller);
      keys[last - r] = kept(keys[last - r], Mirrored ? low : high, smaller);
    }
    return;
  }
  __syncthreads();  // the step before has been read
#pragma unroll
  for (int r = 0; r < Each; ++r) shared[r * blockDim.x + threadIdx.x] = keys[r];
  __syncthreads();
  if (other >= blockDim.x) return;
#pragma unroll
  for (int r = 0; r < Each; ++r) {
    const int at = Mirrored ? Each - 1 - r : r;
    keys[r] = kept(keys[r], shared[at * blockDim.x + other], smaller);
  }
}

// All keys of the block in increasing order, thread by thread. The first step of each merge is
// mirrored, so that the smaller key always goes to the lower place, and the number of threads need
// be no power of two.
template <class Key, int Each>
__device__ void sort_block(Key (&keys)[Each], Key* shared) {
  sort_own<2>(keys);
  for (unsigned threads = 2; threads < 2 * blockDim.x; threads *= 2) {
    step_across<true>(keys, shared, threads - 1);
    for (unsigned by = threads / 4; by > 0; by /= 2) step_across<false>(keys, shared, by);
    merge_own<Each / 2>(keys);
  }
}

// A bit for each number below most_sdm_events, and how many are set below one. In shared memory;
// the block waits between clear, set, count and before.
struct marks {
  static constexpr int words = most_sdm_events / 32;
  std::uint32_t bits[words];
  std::int32_t words_before[words];
  std::int32_t total;

  __device__ void clear() {
    for (int i = threadIdx.x; i < words; i += blockDim.x) bits[i] = 0;
  }
  __device__ void set(int at) { atomicOr(&bits[at / 32], 1u << (at % 32)); }
  __device__ bool is_set(int at) const { return (bits[at / 32] >> (at % 32) & 1u) != 0; }
  __device__ int before(int at) const {
    return words_before[at / 32] + __popc(bits[at / 32] & ((1u << (at % 32)) - 1));
  }

  // By the first warp: a lane takes words that are neighbours.
  __device__ void count() {
    constexpr int each = words / 32;
    if (threadIdx.x >= 32) return;
    const int first = threadIdx.x * each;
    int own = 0;
    for (int i = first; i < first + each; ++i) own += __popc(bits[i]);
    int up_to_here = own;
    for (int by = 1; by < 32; by *= 2) {
      const int below = __shfl_up_sync(whole_warp, up_to_here, by);
      if (threadIdx.x >= by) up_to_here += below;
    }
    if (threadIdx.x == 31) total = up_to_here;
    int sum = up_to_here - own;
    for (int i = first; i < first + each; ++i) {
      words_before[i] = sum;
      sum += __popc(bits[i]);
    }
  }
};

struct chunk_arrays {
  const std::int32_t *k_idx, *q_idx;
  std::int32_t *order, *place, *run_of, *runs, *rows, *written;
};

template <class Key, int Each>
__global__ void __launch_bounds__(most_threads)
    order_grid(chunk_arrays all, sdm_sizes sizes, int event_bits) {
  extern __shared__ __align__(16) unsigned char room[];
  __shared__ marks starts;       // by position: a run begins here
  __shared__ marks with_writes;  // by run
  __shared__ int sorted_events;
  Key* const sorted = reinterpret_cast<Key*>(room);

  const std::int64_t chunk = blockIdx.x;
  const std::int64_t p = chunk / sizes.chunks();
  const std::int64_t n = chunk % sizes.chunks();
  const std::int64_t token = p * sizes.tokens + n * sizes.chunk;
  const std::int64_t first_row = p * sizes.slots;
  const auto events = static_cast<int>(sizes.events());
  const auto token_events = static_cast<int>(sizes.token_events());
  const auto writes = static_cast<int>(sizes.writes);
  const int known =
      static_cast<int>(sizes.tokens_in(n)) * token_events;  // of tokens that are there
  const std::int32_t* const k_idx = all.k_idx + token * sizes.writes;
  const std::int32_t* const q_idx = all.q_idx + token * sizes.reads;
  std::int32_t* const place = all.place + chunk * events;
  std::int32_t* const run_of = all.run_of + chunk * events;

  starts.clear();
  with_writes.clear();
  if (threadIdx.x == 0) sorted_events = events;
  Key keys[Each];
#pragma unroll
  for (int r = 0; r < Each; ++r) {
    const int event = r * blockDim.x + threadIdx.x;
    keys[r] = no_key<Key>();
    if (event < known) {
      const int t = event / token_events;
      const int w = event - t * token_events;
      const std::int64_t row =
          w < writes ? k_idx[t * writes + w] : q_idx[t * (token_events - writes) + (w - writes)];
      const std::int64_t slot = row - first_row;
      if (slot >= 0 && slot < sizes.slots) {
        keys[r] = static_cast<Key>(slot) << event_bits | static_cast<Key>(event);
      }
    }
    if (keys[r] == no_key<Key>() && event < events) {
      place[event] = -1;
      run_of[event] = -1;
    }
  }

  sort_block(keys, sorted);
  __syncthreads();  // the last step has been read
#pragma unroll
  for (int r = 0; r < Each; ++r) sorted[threadIdx.x * Each + r] = keys[r];
  __syncthreads();

  for (int i = threadIdx.x; i < events; i += blockDim.x) {
    const Key before = i > 0 ? sorted[i - 1] : no_key<Key>();
    if (sorted[i] == no_key<Key>()) {
      if (i == 0 || before != no_key<Key>()) sorted_events = i;  // one thread at most
    } else if (i == 0 || sorted[i] >> event_bits != before >> event_bits) {
      starts.set(i);
    }
  }
  __syncthreads();
  starts.count();
  __syncthreads();

  const int count = sorted_events;
  const int found = starts.total;
  std::int32_t* const order = all.order + chunk * events;
  std::int32_t* const runs = all.runs + chunk * (events + 1);
  std::int32_t* const rows = all.rows + chunk * events;
  for (int i = threadIdx.x; i < events; i += blockDim.x) {
    if (i >= count) {
      order[i] = -1;
      continue;
    }
    const auto event = static_cast<int>(sorted[i] & ((Key{1} << event_bits) - 1));
    const bool begins = starts.is_set(i);
    const int run = starts.before(i) + (begins ? 0 : -1);
    order[i] = event;
    place[event] = i;
    run_of[event] = run;
    if (begins) {
      runs[run] = i;
      rows[run] =
          static_cast<std::int32_t>(first_row + static_cast<std::int64_t>(sorted[i] >> event_bits));
    }
    if (event % token_events < writes) with_writes.set(run);
  }
  __syncthreads();
  with_writes.count();
  __syncthreads();

  std::int32_t* const written = all.written + chunk * events;
  for (int run = threadIdx.x; run < events; run += blockDim.x) {
    if (run >= found) {
      runs[run] = count;
      rows[run] = -1;
    }
    written[run] = with_writes.is_set(run) ? with_writes.before(run) : -1;
  }
  if (threadIdx.x == 0) runs[events] = count;
}

template <class Key, int Each>
void launch_order(cuda_call& call, const chunk_arrays& all, const sdm_sizes& sizes,
                  int event_bits) {
  constexpr auto most_bytes = static_cast<int>(most_threads * Each * sizeof(Key));
  constexpr int given_unasked = 32 * 1024;  // beside what is static, without an attribute
  const auto events = static_cast<unsigned>(sizes.events());
  const unsigned threads = (events + 32 * Each - 1) / (32 * Each) * 32;
  const std::size_t bytes = std::size_t{threads} * Each * sizeof(Key);
  const auto grid = &order_grid<Key, Each>;
  if (bytes > given_unasked) {
    // The most that it is ever launched with, so that threads that set it agree. What it returns is
    // CUDA's last error too, at which the device looks.
    cudaFuncSetAttribute(grid, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes);
  }
  const auto blocks = static_cast<unsigned>(sizes.streams * sizes.chunks());
  grid<<<blocks, threads, bytes, call.stream()>>>(all, sizes, event_bits);
}

}  // namespace

void order_cuda(cuda_call& call, read<std::int32_t> k_idx, read<std::int32_t> q_idx,
                write<std::int32_t> order, write<std::int32_t> place, write<std::int32_t> run_of,
                write<std::int32_t> runs, write<std::int32_t> rows, write<std::int32_t> written,
                sdm_sizes sizes) {
  check_order(k_idx, q_idx, order, place, run_of, runs, rows, written, sizes);
  if (sizes.tokens == 0) return;
  const chunk_arrays all{k_idx.data(),  q_idx.data(), order.data(), place.data(),
                         run_of.data(), runs.data(),  rows.data(),  written.data()};
  const std::int64_t events = sizes.events();
  int event_bits = 1;
  while (std::int64_t{1} << event_bits < events) ++event_bits;
  // A slot of all ones is none, so that no key is no_key.
  const bool narrow = sizes.slots < std::int64_t{1} << (32 - event_bits);
  const bool many = events > most_threads * 8;
  if (narrow && many) return launch_order<std::uint32_t, 16>(call, all, sizes, event_bits);
  if (narrow) return launch_order<std::uint32_t, 8>(call, all, sizes, event_bits);
  if (many) return launch_order<std::uint64_t, 16>(call, all, sizes, event_bits);
  launch_order<std::uint64_t, 8>(call, all, sizes, event_bits);
}

}  // namespace reprise::REPRISE_BODIES::sdm
