// bring_plan on CUDA: one block, 16 bytes a thread.
//
// Floor: two round trips over the bus, one behind the other, a microsecond or two each; a plan of
// 36 points is 5 KB, so its bytes are nothing beside that. It runs beside the model's first works.
// One thread asks for the slot: warps that ask the host for one line are answered one by one, a
// microsecond each (H200: 17.6 us where all of this block ask, 2.1 where one thread does).
#include "reprise/cuda/call.cuh"
#include "reprise/tap/bring_plan.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned bring_threads = 512;

// Kept in the second-level cache over all that the model reads meanwhile: a producer that has to go
// to memory for its line holds its place on the card a microsecond longer.
__device__ void store_to_stay(std::uint64_t* to, ulonglong2 pair) {
  std::uint64_t policy = 0;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile(
      "st.global.L2::cache_hint.v2.u64 [%0], {%1, %2}, %3;" ::"l"(__cvta_generic_to_global(to)),
      "l"(pair.x), "l"(pair.y), "l"(policy)
      : "memory");
}

__global__ void __launch_bounds__(bring_threads)
    bring_plan_block(read<std::uint64_t> slots, read<std::uint64_t> plans,
                     write<std::uint64_t> words, inout<std::uint64_t> replays,
                     write<std::uint64_t> consumed, std::uint64_t words_per_plan) {
  __shared__ std::uint64_t told;
  std::uint64_t turn = 0;  // of thread 0
  if (threadIdx.x == 0) {
    turn = *static_cast<volatile std::uint64_t*>(replays.data());
    // Never through a cache that outlives the launch: the host rewrites slots and plans.
    told = __ldcv(reinterpret_cast<const unsigned long long*>(slots.data() + turn % slots.size()));
  }
  __syncthreads();
  const std::uint64_t said = told;
  const std::uint64_t most = words_per_plan < words.size() ? words_per_plan : words.size();
  const std::uint64_t wanted = words_to_bring(said);
  const std::uint64_t count = wanted < most ? wanted : most;
  // Plans are a multiple of 16 bytes apart, so only an odd last word is alone.
  const std::uint64_t* const from = plans.data() + index_to_bring(said) * words_per_plan;
#pragma unroll 4
  for (std::uint64_t i = 2 * threadIdx.x; i + 1 < count; i += 2 * bring_threads) {
    const ulonglong2 pair = __ldcv(reinterpret_cast<const ulonglong2*>(from + i));
    store_to_stay(words.data() + i, pair);
  }
  if (threadIdx.x == 0 && count % 2 != 0) {
    words.data()[count - 1] = __ldcv(reinterpret_cast<const unsigned long long*>(from + count - 1));
  }

  // The host rewrites what was read when it has seen the count, which is written after that.
  __syncthreads();
  if (threadIdx.x != 0) return;
  replays.data()[0] = turn + 1;
  *static_cast<volatile std::uint64_t*>(consumed.data()) = turn + 1;
}

}  // namespace

void bring_plan_cuda(cuda_call& call, read<std::uint64_t> slots, read<std::uint64_t> plans,
                     write<std::uint64_t> words, inout<std::uint64_t> replays,
                     write<std::uint64_t> consumed, std::uint64_t words_per_plan) {
  bring_plan_block<<<1, bring_threads, 0, call.stream()>>>(slots, plans, words, replays, consumed,
                                                           words_per_plan);
}

}  // namespace reprise::REPRISE_BODIES
