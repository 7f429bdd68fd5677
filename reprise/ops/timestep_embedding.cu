// timestep_embedding on CUDA: a thread per pair of a sine and a cosine.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/timestep_embedding.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct embedded_pair {
  read<float> times;
  write<float> out;
  std::int64_t half;
  __device__ void operator()(std::size_t i) const {
    const std::int64_t row = static_cast<std::int64_t>(i) / half;
    const std::int64_t j = static_cast<std::int64_t>(i) % half;
    const float angle = math::mul(times.data()[row], timestep_frequency(j, half));
    float* const to = out.data() + row * 2 * half + j;
    math::sincos(angle, to[half], to[0]);
  }
};

}  // namespace

void timestep_embedding_cuda(cuda_call& call, read<float> times, write<float> out,
                             std::int64_t width) {
  check_timestep_embedding(times.size(), out.size(), width);
  const std::int64_t half = width / 2;
  elementwise(call, times.size() * static_cast<std::size_t>(half), embedded_pair{times, out, half});
}

}  // namespace reprise::REPRISE_BODIES::ops
