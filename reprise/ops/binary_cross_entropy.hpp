// binary_cross_entropy: the mean of what logits of two classes lose against the probability of the
// second, as a loss; binary_cross_entropy_grad: what reaches the logits of the gradient dloss of
// that; binary_cross_entropy_target_grad: what reaches the targets.
//
//   logits, targets, dlogits, dtargets: any shape, the same for all, n elements in all; loss [1],
//   dloss [1]; targets are in [0, 1], s(x) = 1 / (1 + e^-x), x a logit and t its target:
//     loss     = sum ((max(x, 0) - x * t) + log(1 + e^-|x|)) / n; 0 where n is 0
//     dlogit   = (s(x) - t) * (dloss / n)
//     dtarget  = -(x * (dloss / n))
//
// The sum is that of -t log s(x) - (1 - t) log(1 - s(x)), without what overflows or cancels. No
// host looks at targets: one outside of [0, 1] is taken as the formula takes it.
//
// The same bits on the CPU and on CUDA: every operation is rounded on its own, e^x and log are
// those of math.hpp, and the sum has one order, fixed by n alone (total_sum.hpp). Gradients are
// elementwise.
//
// dlogits may be logits or targets themselves, dtargets may be logits. Bodies throw usage_error
// when sizes do not fit. On CUDA binary_cross_entropy needs a workspace, a float for each 4096
// elements.
#pragma once

#include <cstddef>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> logits, read<float> targets, write<float> loss)>
    binary_cross_entropy{"binary_cross_entropy"};
inline constexpr kernel<void(read<float> logits, read<float> targets, read<float> dloss,
                             write<float> dlogits)>
    binary_cross_entropy_grad{"binary_cross_entropy_grad"};
inline constexpr kernel<void(read<float> logits, read<float> dloss, write<float> dtargets)>
    binary_cross_entropy_target_grad{"binary_cross_entropy_target_grad"};

void add_binary_cross_entropy(kernel_registry& registry);

namespace ops {

void binary_cross_entropy_cpu(cpu_call&, read<float> logits, read<float> targets,
                              write<float> loss);
void binary_cross_entropy_cuda(cuda_call&, read<float> logits, read<float> targets,
                               write<float> loss);
void binary_cross_entropy_grad_cpu(cpu_call&, read<float> logits, read<float> targets,
                                   read<float> dloss, write<float> dlogits);
void binary_cross_entropy_grad_cuda(cuda_call&, read<float> logits, read<float> targets,
                                    read<float> dloss, write<float> dlogits);
void binary_cross_entropy_target_grad_cpu(cpu_call&, read<float> logits, read<float> dloss,
                                          write<float> dtargets);
void binary_cross_entropy_target_grad_cuda(cuda_call&, read<float> logits, read<float> dloss,
                                           write<float> dtargets);

void check_binary_cross_entropy(std::size_t logits, std::size_t targets, std::size_t loss);
void check_binary_cross_entropy_grad(std::size_t logits, std::size_t targets, std::size_t dloss,
                                     std::size_t dlogits);
void check_binary_cross_entropy_target_grad(std::size_t logits, std::size_t dloss,
                                            std::size_t dtargets);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
