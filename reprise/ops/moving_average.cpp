#include "reprise/ops/moving_average.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_moving_average(std::size_t words, std::size_t value, std::size_t average) {
  need_elements("moving_average", "words", words, 1);
  need_elements("moving_average", "value", value, average);
}

void moving_average_cpu(cpu_call& call, read<float> words, read<float> value,
                        inout<float> average) {
  check_moving_average(words.size(), value.size(), average.size());
  const float decay = words[0];
  const auto from = value.data();
  const auto to = average.data();
  each_element(call, average.size(),
               [=](std::int64_t i) { to[i] = averaged(decay, to[i], from[i]); });
}

}  // namespace ops

void add_moving_average(kernel_registry& registry) {
  registry.add(moving_average,
               {{device_kind::cpu, "generic", ops::moving_average_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::moving_average_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
