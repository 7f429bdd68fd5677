// What a sampler of a flow or diffusion model does between two evaluations of the model: guidance,
// the drift, and one step along it. x, and all that is of its size, has any shape.
//
//   guide          out = u + s (c - u): the branch without a class, moved by s towards the one
//                  with it (Ho and Salimans, "Classifier-Free Diffusion Guidance", 2022)
//   flow_drift     out = a p + b x: the drift at x of a model that predicts the data p, for factors
//                  {a, b}; with a = -b = 1 / (1 - t) the velocity (p - x) / (1 - t) of the straight
//                  path (Lipman et al., "Flow Matching for Generative Modeling", 2022)
//   euler_step     x += dt v, of the ordinary differential equation
//   sde_step       x += dt v + sigma n, with noise n: Euler and Maruyama's of a stochastic one
//
// s, {a, b}, dt and sigma change from step to step: they are words in device memory, so that a
// recorded step takes those of its run. Elementwise, so row-invariant; each operation is rounded on
// its own, so the CPU and CUDA give the same bits.
//
// out may be an input of its size. Bodies throw usage_error when sizes do not fit.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> with, read<float> without, read<float> scale,
                             write<float> out)>
    guide{"guide"};
inline constexpr kernel<void(read<float> data, read<float> x, read<float> factors,
                             write<float> out)>
    flow_drift{"flow_drift"};
inline constexpr kernel<void(inout<float> x, read<float> drift, read<float> dt)> euler_step{
    "euler_step"};
inline constexpr kernel<void(inout<float> x, read<float> drift, read<float> noise, read<float> dt,
                             read<float> sigma)>
    sde_step{"sde_step"};

void add_flow(kernel_registry& registry);

namespace ops {

void guide_cpu(cpu_call&, read<float> with, read<float> without, read<float> scale,
               write<float> out);
void guide_cuda(cuda_call&, read<float> with, read<float> without, read<float> scale,
                write<float> out);
void flow_drift_cpu(cpu_call&, read<float> data, read<float> x, read<float> factors,
                    write<float> out);
void flow_drift_cuda(cuda_call&, read<float> data, read<float> x, read<float> factors,
                     write<float> out);
void euler_step_cpu(cpu_call&, inout<float> x, read<float> drift, read<float> dt);
void euler_step_cuda(cuda_call&, inout<float> x, read<float> drift, read<float> dt);
void sde_step_cpu(cpu_call&, inout<float> x, read<float> drift, read<float> noise, read<float> dt,
                  read<float> sigma);
void sde_step_cuda(cuda_call&, inout<float> x, read<float> drift, read<float> noise, read<float> dt,
                   read<float> sigma);

void check_guide(std::size_t with, std::size_t without, std::size_t scale, std::size_t out);
void check_flow_drift(std::size_t data, std::size_t x, std::size_t factors, std::size_t out);
void check_euler_step(std::size_t x, std::size_t drift, std::size_t dt);
void check_sde_step(std::size_t x, std::size_t drift, std::size_t noise, std::size_t dt,
                    std::size_t sigma);

// One element of each.
REPRISE_HD inline float guided(float with, float without, float scale) {
  return math::add(without, math::mul(scale, math::sub(with, without)));
}
REPRISE_HD inline float drift_of(float data, float x, float of_data, float of_x) {
  return math::add(math::mul(of_data, data), math::mul(of_x, x));
}
REPRISE_HD inline float along(float x, float drift, float dt) {
  return math::add(x, math::mul(dt, drift));
}
REPRISE_HD inline float shaken(float x, float drift, float noise, float dt, float sigma) {
  return math::add(along(x, drift, dt), math::mul(sigma, noise));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
