// The CUDA bodies of the kernels of scenarios about training: one thread does it all, since only
// values and order matter. Each operation is rounded on its own.
#include "reprise/base/gradient_rule.hpp"
#include "reprise/cuda/call.cuh"
#include "reprise/ops/math.hpp"
#include "scenarios/grad_kernels.hpp"

namespace reprise::scenarios::REPRISE_BODIES {

namespace {

__global__ void product_grid(read<float> a, read<float> b, write<float> y) {
  const view<const float> x = a.followed();
  const view<const float> by = b.followed();
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = math::mul(x[i % x.size()], by[i % by.size()]);
  }
}

__global__ void sum_of_grid(read<float> a, read<float> b, write<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = math::add(a[i], b[i]);
}

__global__ void scale_grid(inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = math::mul(by, x[i]);
}

__global__ void stow_grid(read<float> x, write<std::int32_t> to) {
  const view<const float> from = x.followed();
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = stowed(from[i % from.size()]);
}

__global__ void unstow_grid(read<std::int32_t> from, write<float> y) {
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::int32_t first = from[i];
    bool alike = true;
    for (std::size_t j = i; j < from.size(); j += y.size()) alike = alike && from[j] == first;
    y[i] = alike ? unstowed(first) : __int_as_float(0x7fc00000);
  }
}

__global__ void keep_half_grid(read<float> uniform, write<float> kept) {
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = uniform[i] >= 0.5F ? 2.0F : 0.0F;
}

__global__ void deliver_rows_grid(read<float> dy, read<float> x, read<std::int32_t> rule,
                                  inout<float> to) {
  const gradient_rule how{rule[0]};
  if (how == gradient_rule::leave) return;
  for (std::size_t j = 0; j < to.size(); ++j) {
    float sum = 0.0F;
    for (std::size_t i = j; i < x.size(); i += to.size()) {
      sum = math::add(sum, math::mul(dy[i], x[i]));
    }
    to[j] = how == gradient_rule::add ? math::add(to[j], sum) : sum;
  }
}

__global__ void count_step_grid(read<float> x, inout<std::int32_t> steps, inout<float> running) {
  steps[0] = steps[0] + 1;
  for (std::size_t j = 0; j < running.size(); ++j) {
    running[j] = math::add(math::mul(0.5F, running[j]), x[j]);
  }
}

__global__ void descend_grid(read<float> grad, float rate, inout<float> w) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    w[i] = math::sub(w[i], math::mul(rate, grad[i]));
  }
}

}  // namespace

void product_cuda(cuda_call& call, read<float> a, read<float> b, write<float> y) {
  product_grid<<<1, 1, 0, call.stream()>>>(a, b, y);
}

void sum_of_cuda(cuda_call& call, read<float> a, read<float> b, write<float> y) {
  sum_of_grid<<<1, 1, 0, call.stream()>>>(a, b, y);
}

void scale_cuda(cuda_call& call, inout<float> x, float by) {
  scale_grid<<<1, 1, 0, call.stream()>>>(x, by);
}

void stow_cuda(cuda_call& call, read<float> x, write<std::int32_t> to) {
  stow_grid<<<1, 1, 0, call.stream()>>>(x, to);
}

void unstow_cuda(cuda_call& call, read<std::int32_t> from, write<float> y) {
  unstow_grid<<<1, 1, 0, call.stream()>>>(from, y);
}

void keep_half_cuda(cuda_call& call, read<float> uniform, write<float> kept) {
  keep_half_grid<<<1, 1, 0, call.stream()>>>(uniform, kept);
}

void deliver_rows_cuda(cuda_call& call, read<float> dy, read<float> x, read<std::int32_t> rule,
                       inout<float> to) {
  deliver_rows_grid<<<1, 1, 0, call.stream()>>>(dy, x, rule, to);
}

void count_step_cuda(cuda_call& call, read<float> x, inout<std::int32_t> steps,
                     inout<float> running) {
  count_step_grid<<<1, 1, 0, call.stream()>>>(x, steps, running);
}

void descend_cuda(cuda_call& call, read<float> grad, float rate, inout<float> w) {
  descend_grid<<<1, 1, 0, call.stream()>>>(grad, rate, w);
}

}  // namespace reprise::scenarios::REPRISE_BODIES
