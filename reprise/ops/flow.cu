// The arithmetic of flow.hpp on CUDA: a thread per element. The words are read by each thread; they
// come from L2 once a block.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/flow.hpp"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct guided_element {
  read<float> with, without, scale;
  write<float> out;
  __device__ void operator()(std::size_t i) const {
    out.data()[i] = guided(with.data()[i], without.data()[i], scale.data()[0]);
  }
};

struct drift_element {
  read<float> data, x, factors;
  write<float> out;
  __device__ void operator()(std::size_t i) const {
    out.data()[i] = drift_of(data.data()[i], x.data()[i], factors.data()[0], factors.data()[1]);
  }
};

struct euler_element {
  inout<float> x;
  read<float> drift, dt;
  __device__ void operator()(std::size_t i) const {
    x.data()[i] = along(x.data()[i], drift.data()[i], dt.data()[0]);
  }
};

struct sde_element {
  inout<float> x;
  read<float> drift, noise, dt, sigma;
  __device__ void operator()(std::size_t i) const {
    x.data()[i] =
        shaken(x.data()[i], drift.data()[i], noise.data()[i], dt.data()[0], sigma.data()[0]);
  }
};

}  // namespace

void guide_cuda(cuda_call& call, read<float> with, read<float> without, read<float> scale,
                write<float> out) {
  check_guide(with.size(), without.size(), scale.size(), out.size());
  elementwise(call, with.size(), guided_element{with, without, scale, out});
}

void flow_drift_cuda(cuda_call& call, read<float> data, read<float> x, read<float> factors,
                     write<float> out) {
  check_flow_drift(data.size(), x.size(), factors.size(), out.size());
  elementwise(call, data.size(), drift_element{data, x, factors, out});
}

void euler_step_cuda(cuda_call& call, inout<float> x, read<float> drift, read<float> dt) {
  check_euler_step(x.size(), drift.size(), dt.size());
  elementwise(call, x.size(), euler_element{x, drift, dt});
}

void sde_step_cuda(cuda_call& call, inout<float> x, read<float> drift, read<float> noise,
                   read<float> dt, read<float> sigma) {
  check_sde_step(x.size(), drift.size(), noise.size(), dt.size(), sigma.size());
  elementwise(call, x.size(), sde_element{x, drift, noise, dt, sigma});
}

}  // namespace reprise::REPRISE_BODIES::ops
