#include "reprise/ops/optimizers.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_sgd(std::size_t words, std::size_t grad, std::size_t velocity, std::size_t weight) {
  need_elements("sgd", "words", words, 3);
  need_elements("sgd", "grad", grad, weight);
  if (velocity != 0) need_elements("sgd", "velocity", velocity, weight);
}

void check_adamw(std::size_t words, std::size_t grad, std::size_t m, std::size_t v,
                 std::size_t weight) {
  need_elements("adamw", "words", words, 7);
  need_elements("adamw", "grad", grad, weight);
  need_elements("adamw", "m", m, weight);
  need_elements("adamw", "v", v, weight);
}

void sgd_cpu(cpu_call& call, read<float> words, read<float> grad, inout<float> velocity,
             inout<float> weight) {
  check_sgd(words.size(), grad.size(), velocity.size(), weight.size());
  const sgd_words by = sgd_words::at(words.data());
  if (velocity.size() == 0) {
    each_element(call, weight.size(), [&](std::int64_t i) {
      const float before = weight.data()[i];
      weight.data()[i] = by.moved(before, by.decayed(grad.data()[i], before));
    });
    return;
  }
  each_element(call, weight.size(), [&](std::int64_t i) {
    const float before = weight.data()[i];
    const float speed = by.faster(velocity.data()[i], by.decayed(grad.data()[i], before));
    velocity.data()[i] = speed;
    weight.data()[i] = by.moved(before, speed);
  });
}

void adamw_cpu(cpu_call& call, read<float> words, read<float> grad, inout<float> m, inout<float> v,
               inout<float> weight) {
  check_adamw(words.size(), grad.size(), m.size(), v.size(), weight.size());
  const adamw_words by = adamw_words::at(words.data());
  each_element(call, weight.size(), [&](std::int64_t i) {
    const float g = grad.data()[i];
    const float first = adamw_words::seen(by.beta1, m.data()[i], g);
    const float second = adamw_words::seen(by.beta2, v.data()[i], g * g);
    m.data()[i] = first;
    v.data()[i] = second;
    weight.data()[i] = by.moved(weight.data()[i], first, second);
  });
}

}  // namespace ops

void add_optimizers(kernel_registry& registry) {
  registry.add(sgd, {{device_kind::cpu, "generic", ops::sgd_cpu},
                     {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::sgd_cuda)}});
  registry.add(adamw, {{device_kind::cpu, "generic", ops::adamw_cpu},
                       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::adamw_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
