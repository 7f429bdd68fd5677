// The norm of gradients on CUDA: a total in f64 for each span, and one thread for what follows from
// all of them; their scaling, a thread per element, which leaves when there is nothing to scale.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/gradient_norm.hpp"
#include "reprise/ops/total_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct square_term {
  read<float> words, grad;
  __device__ double operator()(std::int64_t i) const {
    return square_of(grad.data()[i], words.data()[0]);
  }
};

struct put_squares {
  inout<double> squares;
  gradient_rule rule;
  __device__ void operator()(double sum) const {
    const double before = rule == gradient_rule::add ? squares.data()[0] : 0.0;
    squares.data()[0] = math::add(before, sum);
  }
};

__global__ void norm_of(read<float> words, read<double> squares, write<float> facts) {
  const double sum = squares.data()[0];
  const bool is_finite = isfinite(sum);
  const auto norm = static_cast<float>(__dsqrt_rn(sum));
  facts.data()[0] = norm;
  facts.data()[1] = is_finite ? 1.0f : 0.0f;
  facts.data()[2] = is_finite ? clip_factor(norm, words.data()[1]) : 1.0f;
}

struct scaled_element {
  read<float> words, facts;
  inout<float> grad;
  __device__ void operator()(std::size_t i) const {
    const auto by = gradient_scale::at(words.data(), facts.data());
    if (by.leaves) return;
    grad.data()[i] = by.scaled(grad.data()[i]);
  }
};

}  // namespace

void gradient_squares_cuda(cuda_call& call, read<float> words, read<float> grad,
                           inout<double> squares, gradient_rule rule) {
  check_gradient_squares(words.size(), squares.size());
  total_sum<double>(call, grad.size(), square_term{words, grad}, put_squares{squares, rule});
}

void gradient_norm_cuda(cuda_call& call, read<float> words, read<double> squares,
                        write<float> facts) {
  check_gradient_norm(words.size(), squares.size(), facts.size());
  norm_of<<<1, 1, 0, call.stream()>>>(words, squares, facts);
}

void scale_gradients_cuda(cuda_call& call, read<float> words, read<float> facts,
                          inout<float> grad) {
  check_scale_gradients(words.size(), facts.size());
  elementwise(call, grad.size(), scaled_element{words, facts, grad});
}

}  // namespace reprise::REPRISE_BODIES::ops
