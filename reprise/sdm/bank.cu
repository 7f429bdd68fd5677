// Whole banks on CUDA: a thread has eight elements of a bank, and goes over the streams with them.
//
// Floor: what bank.hpp names, read and written once each. A small bank of many streams is spread
// over the second axis of the grid, where that changes no sum.
#include <algorithm>
#include <type_traits>

#include "reprise/cuda/call.cuh"
#include "reprise/ops/eight.cuh"
#include "reprise/sdm/bank.hpp"

namespace reprise::REPRISE_BODIES::sdm {

namespace {

constexpr int threads = 256;
constexpr std::int64_t enough_blocks = 2048;  // to fill a card several times

unsigned blocks_of_eights(std::int64_t elements) {
  return static_cast<unsigned>((elements + threads * 8 - 1) / (threads * 8));
}

__device__ inline std::int64_t first_of_thread() {
  return (std::int64_t{blockIdx.x} * threads + threadIdx.x) * 8;
}

template <bool Aligned, class B>
__global__ void __launch_bounds__(threads)
    expand_grid(const float* initial, B* bank, std::int64_t each, std::int64_t streams) {
  const std::int64_t at = first_of_thread();
  if (at >= each) return;
  float values[8] = {};
  if (initial != nullptr) ops::load_eight<Aligned>(initial, at, each, values);
  for (std::int64_t p = blockIdx.y; p < streams; p += gridDim.y) {
    ops::store_eight<Aligned>(bank + p * each, at, each, values);
  }
}

template <bool Aligned, class G>
__global__ void __launch_bounds__(threads)
    bank_grad_grid(const G* cotangent, float* grad, const std::int32_t* rule, std::int64_t each,
                   std::int64_t streams) {
  const gradient_rule by = gradient_rule_of(*rule);
  const std::int64_t at = first_of_thread();
  if (by == gradient_rule::leave || at >= each) return;
  float sums[8] = {};
#pragma unroll 4
  for (std::int64_t p = 0; p < streams; ++p) {
    float values[8];
    ops::load_eight<Aligned>(cotangent + p * each, at, each, values);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = math::add(sums[i], values[i]);
  }
  if (by == gradient_rule::add) {  // else what is there is not read
    float old[8];
    ops::load_eight<Aligned>(static_cast<const float*>(grad), at, each, old);
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] = math::add(old[i], sums[i]);
  }
  ops::store_eight<Aligned>(grad, at, each, sums);
}

template <bool Aligned, class To, class From>
__global__ void __launch_bounds__(threads) cast_grid(const From* from, To* to, std::int64_t count) {
  const std::int64_t at = first_of_thread();
  if (at >= count) return;
  float values[8] = {};
  if (from != nullptr) ops::load_eight<Aligned>(from, at, count, values);
  ops::store_eight<Aligned>(to, at, count, values);
}

// Bit for bit, in words of 16 bytes where they fit.
template <class Word>
__global__ void __launch_bounds__(threads)
    copy_grid(const Word* from, Word* to, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i < count) to[i] = from[i];
}

template <class Word>
void copy_words(cuda_call& call, const void* from, void* to, std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(bytes / sizeof(Word));
  const auto blocks = static_cast<unsigned>((count + threads - 1) / threads);
  copy_grid<<<blocks, threads, 0, call.stream()>>>(static_cast<const Word*>(from),
                                                   static_cast<Word*>(to), count);
}

}  // namespace

template <class B, class X>
void expand_cuda(cuda_call& call, read<X> initial, write<B> bank, std::int64_t streams) {
  const std::int64_t each = expanded_elements(initial.size(), bank.size(), streams);
  if (each == 0) return;
  const float* const from = initial.size() == 0 ? nullptr : initial.data();
  const unsigned across = blocks_of_eights(each);
  const std::int64_t shares = std::clamp<std::int64_t>(enough_blocks / across, 1, streams);
  const auto grid =
      ops::in_eights(each, {from, bank.data()}) ? &expand_grid<true, B> : &expand_grid<false, B>;
  grid<<<dim3{across, static_cast<unsigned>(shares)}, threads, 0, call.stream()>>>(
      from, bank.data(), each, streams);
}

template <class G, class X>
void bank_grad_cuda(cuda_call& call, read<G> cotangent, inout<X> grad, read<std::int32_t> rule,
                    std::int64_t streams) {
  const std::int64_t each = bank_grad_elements(cotangent.size(), grad.size(), rule.size(), streams);
  if (each == 0) return;
  const auto grid = ops::in_eights(each, {cotangent.data(), grad.data()})
                        ? &bank_grad_grid<true, G>
                        : &bank_grad_grid<false, G>;
  grid<<<blocks_of_eights(each), threads, 0, call.stream()>>>(cotangent.data(), grad.data(),
                                                              rule.data(), each, streams);
}

template <class To, class From>
void cast_cuda(cuda_call& call, read<From> from, write<To> to) {
  need_cast(from.size(), to.size());
  const auto count = static_cast<std::int64_t>(to.size());
  if (count == 0) return;
  const From* const source = from.size() == 0 ? nullptr : from.data();
  const bool eights = ops::in_eights(count, {source, to.data()});
  if constexpr (std::is_same_v<To, From>) {
    if (source != nullptr) {
      if (eights) {
        copy_words<uint4>(call, source, to.data(), to.bytes());
      } else {
        copy_words<To>(call, source, to.data(), to.bytes());
      }
      return;
    }
  }
  const auto grid = eights ? &cast_grid<true, To, From> : &cast_grid<false, To, From>;
  grid<<<blocks_of_eights(count), threads, 0, call.stream()>>>(source, to.data(), count);
}

template void expand_cuda<float>(cuda_call&, read<float>, write<float>, std::int64_t);
template void expand_cuda<bf16>(cuda_call&, read<float>, write<bf16>, std::int64_t);
template void bank_grad_cuda<float>(cuda_call&, read<float>, inout<float>, read<std::int32_t>,
                                    std::int64_t);
template void bank_grad_cuda<bf16>(cuda_call&, read<bf16>, inout<float>, read<std::int32_t>,
                                   std::int64_t);
template void cast_cuda(cuda_call&, read<float>, write<float>);
template void cast_cuda(cuda_call&, read<bf16>, write<bf16>);
template void cast_cuda(cuda_call&, read<float>, write<bf16>);
template void cast_cuda(cuda_call&, read<bf16>, write<float>);

}  // namespace reprise::REPRISE_BODIES::sdm
