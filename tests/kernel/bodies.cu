// The CUDA bodies of the test kernels: one thread does it all, since only the values matter.
#include "reprise/cuda/call.cuh"
#include "tests/kernel/kernels.hpp"

namespace reprise::test::REPRISE_BODIES {

namespace {

__global__ void transform_grid(read<float> in, write<float> out, affine by) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    double x = in[i];
    for (int n = 0; n < by.times; ++n) {
      x = __dadd_rn(__dmul_rn(static_cast<double>(by.scale), x), by.shift);
    }
    out[i] = static_cast<float>(x);
  }
}

template <class T>
__global__ void raise_grid(inout<T> x, T by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by;
}

__global__ void collect_grid(bool yes, read<std::int32_t> ints, std::uint8_t byte,
                             inout<double> sum, std::int64_t wide, float single,
                             read<std::uint8_t> bytes, affine by, write<double> out, double last) {
  const double all[] = {yes ? 1.0 : 0.0,
                        static_cast<double>(ints[0]),
                        static_cast<double>(byte),
                        sum[0],
                        static_cast<double>(wide),
                        static_cast<double>(single),
                        static_cast<double>(bytes[0]),
                        static_cast<double>(by.scale) + by.shift + by.times,
                        static_cast<double>(out.size()),
                        last};
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = all[i];
  sum[0] += 1;
}

__global__ void workspace_grid(std::int32_t* scratch, std::size_t count, write<std::int32_t> out,
                               std::int32_t value) {
  for (std::size_t i = 0; i < count; ++i) scratch[i] = value;
  for (std::size_t i = 0; i < count; ++i) out[i] = scratch[i];
}

}  // namespace

void transform_cuda(cuda_call& call, read<float> in, write<float> out, affine by) {
  transform_grid<<<1, 1, 0, call.stream()>>>(in, out, by);
}

void raise_cuda_f32(cuda_call& call, inout<float> x, float by) {
  raise_grid<float><<<1, 1, 0, call.stream()>>>(x, by);
}

void raise_cuda_i32(cuda_call& call, inout<std::int32_t> x, std::int32_t by) {
  raise_grid<std::int32_t><<<1, 1, 0, call.stream()>>>(x, by);
}

void collect_cuda(cuda_call& call, bool yes, read<std::int32_t> ints, std::uint8_t byte,
                  inout<double> sum, std::int64_t wide, float single, read<std::uint8_t> bytes,
                  affine by, write<double> out, double last) {
  collect_grid<<<1, 1, 0, call.stream()>>>(yes, ints, byte, sum, wide, single, bytes, by, out,
                                           last);
}

void workspace_cuda(cuda_call& call, write<std::int32_t> out, std::int32_t value) {
  workspace_grid<<<1, 1, 0, call.stream()>>>(
      reinterpret_cast<std::int32_t*>(call.workspace().data()),
      call.workspace().size() / sizeof value, out, value);
}

}  // namespace reprise::test::REPRISE_BODIES
