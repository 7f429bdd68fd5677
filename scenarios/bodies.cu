// The CUDA bodies of the scenarios' kernels: one thread does it all, since only values and order
// matter.
#include "reprise/cuda/call.cuh"
#include "scenarios/kernels.hpp"

namespace reprise::scenarios::REPRISE_BODIES {

namespace {

__global__ void append_digit_grid(inout<std::int32_t> x, std::int32_t digit) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 10 * x[i] + digit;
}

__global__ void add_grid(read<std::int32_t> from, inout<std::int32_t> to) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[from.size() == 1 ? 0 : i];
}

__global__ void times_grid(read<std::int32_t> x, read<std::int32_t> factor, write<std::int32_t> y) {
  const view<const std::int32_t> from = x.followed();
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = from[i] * factor[0];
}

__global__ void sum_up_grid(std::int32_t* copied, read<std::int32_t> x, write<std::int32_t> sum) {
  for (std::size_t i = 0; i < x.size(); ++i) copied[i] = x[i];
  std::int32_t total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) total += copied[i];
  sum[0] = total;
}

}  // namespace

void append_digit_cuda(cuda_call& call, inout<std::int32_t> x, std::int32_t digit) {
  append_digit_grid<<<1, 1, 0, call.stream()>>>(x, digit);
}

void add_cuda(cuda_call& call, read<std::int32_t> from, inout<std::int32_t> to) {
  add_grid<<<1, 1, 0, call.stream()>>>(from, to);
}

void times_cuda(cuda_call& call, read<std::int32_t> x, read<std::int32_t> factor,
                write<std::int32_t> y) {
  times_grid<<<1, 1, 0, call.stream()>>>(x, factor, y);
}

void sum_up_cuda(cuda_call& call, read<std::int32_t> x, write<std::int32_t> sum) {
  sum_up_grid<<<1, 1, 0, call.stream()>>>(reinterpret_cast<std::int32_t*>(call.workspace().data()),
                                          x, sum);
}

}  // namespace reprise::scenarios::REPRISE_BODIES
