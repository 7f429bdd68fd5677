// binary_cross_entropy on CUDA: a total over all elements; its gradients, a thread per element.
#include "reprise/cuda/call.cuh"
#include "reprise/ops/binary_cross_entropy.hpp"
#include "reprise/ops/binary_cross_entropy_elements.hpp"
#include "reprise/ops/elementwise.cuh"
#include "reprise/ops/total_sum.cuh"

namespace reprise::REPRISE_BODIES::ops {

namespace {

struct loss_term {
  read<float> logits, targets;
  __device__ float operator()(std::int64_t i) const {
    return logit_loss(logits.data()[i], targets.data()[i]);
  }
};

struct logit_element {
  read<float> logits, targets, dloss;
  write<float> dlogits;
  __device__ void operator()(std::size_t i) const {
    const logit_slope of{share_of(dloss.data()[0], logits.size())};
    dlogits.data()[i] = of(logits.data()[i], targets.data()[i]);
  }
};

struct target_element {
  read<float> logits, dloss;
  write<float> dtargets;
  __device__ void operator()(std::size_t i) const {
    dtargets.data()[i] = target_slope(logits.data()[i], share_of(dloss.data()[0], logits.size()));
  }
};

}  // namespace

void binary_cross_entropy_cuda(cuda_call& call, read<float> logits, read<float> targets,
                               write<float> loss) {
  check_binary_cross_entropy(logits.size(), targets.size(), loss.size());
  total_sum(call, logits.size(), loss_term{logits, targets}, put_mean{loss, logits.size()});
}

void binary_cross_entropy_grad_cuda(cuda_call& call, read<float> logits, read<float> targets,
                                    read<float> dloss, write<float> dlogits) {
  check_binary_cross_entropy_grad(logits.size(), targets.size(), dloss.size(), dlogits.size());
  elementwise(call, logits.size(), logit_element{logits, targets, dloss, dlogits});
}

void binary_cross_entropy_target_grad_cuda(cuda_call& call, read<float> logits, read<float> dloss,
                                           write<float> dtargets) {
  check_binary_cross_entropy_target_grad(logits.size(), dloss.size(), dtargets.size());
  elementwise(call, logits.size(), target_element{logits, dloss, dtargets});
}

}  // namespace reprise::REPRISE_BODIES::ops
