// softmax_cross_entropy: the mean over rows of -log of the probability that the softmax of a row of
// logits gives its target, as a loss; softmax_cross_entropy_grad: what reaches the logits of the
// gradient dloss of that.
//
//   logits, dlogits [m, classes], targets [m], loss, counted, dloss [1]; a row counts when its
//   target is at least 0, and counted is how many do (exact below 2^24); over l of a row:
//     top_i = max logits[i, l], sum_i = sum of e^(logits[i, l] - top_i)
//     loss  = the sum of log sum_i + (top_i - logits[i, target_i]) over rows that count / counted;
//             0 where none does
//     dlogits[i, j] = (e^(logits[i, j] - top_i) / sum_i - (j is target_i)) * (dloss / counted) in
//             rows that count, else 0
//
// A target of `classes` or more is nobody's class. No host looks at targets, so it makes the loss a
// NaN, and each gradient of its row; so does a row with a NaN, with +inf, or of -inf alone.
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, e^x and log are
// those of math.hpp, and every sum has one order: over a row in 32 slots, over the rows in 1024
// (slot_sum.hpp), those that do not count as zeros. So dlogits is row-invariant, but for `counted`,
// and the loss depends on m alone beside the rows.
//
// dlogits may be logits itself. Bodies throw usage_error when sizes do not fit `classes`. On CUDA
// softmax_cross_entropy needs a workspace, a float a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> logits, read<std::int32_t> targets, write<float> loss,
                             write<float> counted, std::int64_t classes)>
    softmax_cross_entropy{"softmax_cross_entropy"};
inline constexpr kernel<void(read<float> logits, read<std::int32_t> targets, read<float> counted,
                             read<float> dloss, write<float> dlogits, std::int64_t classes)>
    softmax_cross_entropy_grad{"softmax_cross_entropy_grad"};

void add_softmax_cross_entropy(kernel_registry& registry);

namespace ops {

void softmax_cross_entropy_cpu(cpu_call&, read<float> logits, read<std::int32_t> targets,
                               write<float> loss, write<float> counted, std::int64_t classes);
void softmax_cross_entropy_cuda(cuda_call&, read<float> logits, read<std::int32_t> targets,
                                write<float> loss, write<float> counted, std::int64_t classes);
void softmax_cross_entropy_grad_cpu(cpu_call&, read<float> logits, read<std::int32_t> targets,
                                    read<float> counted, read<float> dloss, write<float> dlogits,
                                    std::int64_t classes);
void softmax_cross_entropy_grad_cuda(cuda_call&, read<float> logits, read<std::int32_t> targets,
                                     read<float> counted, read<float> dloss, write<float> dlogits,
                                     std::int64_t classes);

// How many rows; throw usage_error when sizes do not fit.
std::int64_t cross_entropy_rows(std::size_t logits, std::size_t targets, std::size_t loss,
                                std::size_t counted, std::int64_t classes);
std::int64_t cross_entropy_grad_rows(std::size_t logits, std::size_t targets, std::size_t counted,
                                     std::size_t dloss, std::size_t dlogits, std::int64_t classes);

inline constexpr float minus_infinity = -__builtin_huge_valf();
inline constexpr float not_a_number = __builtin_bit_cast(float, 0x7fc00000u);

// The greater; a NaN never is, the sum over its row has it all the same.
REPRISE_HD inline float greater_of(float top, float logit) {
  return logit > top ? logit : top;
}

REPRISE_HD inline float row_loss(float top, float sum, float of_target) {
  return math::add(math::log(sum), math::sub(top, of_target));
}

// V is float or a vector.
template <class V>
[[gnu::always_inline]] REPRISE_HD inline V probability(const V& logit, float top, float sum) {
  return math::div(math::exp<V>(math::sub(logit, math::fill<V>(top))), math::fill<V>(sum));
}

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
