#include "reprise/ops/softmax_cross_entropy.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/each_element.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

struct softmax_row {
  float top;
  float sum;
};

// The sum in slots, sixteen of them at a time; logits of -inf behind the last add zeros.
softmax_row softmax_of(pointer_to<const float> logits, std::int64_t classes) {
  float top = minus_infinity;
  for (std::int64_t j = 0; j < classes; ++j) top = greater_of(top, logits[j]);
  float slots[row_slots] = {};
  for (std::int64_t begin = 0; begin < classes; begin += row_slots) {
    float values[row_slots];
    const std::int64_t here = std::min<std::int64_t>(classes - begin, row_slots);
    std::fill(values + here, values + row_slots, minus_infinity);
    read_elements<const float>(logits + begin, static_cast<std::size_t>(here), values);
    for (int s = 0; s < row_slots; s += 16) {
      math::f32x16 part;
      math::f32x16 sums;
      std::memcpy(&part, values + s, sizeof part);
      std::memcpy(&sums, slots + s, sizeof sums);
      sums += math::exp<math::f32x16>(part - math::fill<math::f32x16>(top));
      std::memcpy(slots + s, &sums, sizeof sums);
    }
  }
  return {top, fold_slots<row_slots>(slots)};
}

void write_gradient(pointer_to<const float> logits, std::int64_t classes, std::int32_t target,
                    float scale, pointer_to<float> to) {
  const softmax_row row = softmax_of(logits, classes);
  const float of_target = logits[target];
  std::int64_t j = 0;
  for (; j + 16 <= classes; j += 16) {
    const math::f32x16 share = probability<math::f32x16>(sixteen_at(logits + j), row.top, row.sum);
    const math::f32x16 values = share * math::fill<math::f32x16>(scale);
    write_elements<float>(&values, 16, to + j);
  }
  for (; j < classes; ++j) to[j] = probability<float>(logits[j], row.top, row.sum) * scale;
  to[target] = (probability<float>(of_target, row.top, row.sum) - 1.0f) * scale;
}

}  // namespace

std::int64_t cross_entropy_rows(std::size_t logits, std::size_t targets, std::size_t loss,
                                std::size_t counted, std::int64_t classes) {
  constexpr const char* op = "softmax_cross_entropy";
  const std::int64_t rows = whole_rows(op, "logits", logits, classes);
  need_elements(op, "targets", targets, static_cast<std::size_t>(rows));
  need_elements(op, "the loss", loss, 1);
  need_elements(op, "counted", counted, 1);
  return rows;
}

std::int64_t cross_entropy_grad_rows(std::size_t logits, std::size_t targets, std::size_t counted,
                                     std::size_t dloss, std::size_t dlogits, std::int64_t classes) {
  constexpr const char* op = "softmax_cross_entropy_grad";
  const std::int64_t rows = whole_rows(op, "logits", logits, classes);
  need_elements(op, "targets", targets, static_cast<std::size_t>(rows));
  need_elements(op, "counted", counted, 1);
  need_elements(op, "dloss", dloss, 1);
  need_elements(op, "dlogits", dlogits, logits);
  return rows;
}

void softmax_cross_entropy_cpu(cpu_call& call, read<float> logits, read<std::int32_t> targets,
                               write<float> loss, write<float> counted, std::int64_t classes) {
  const std::int64_t rows =
      cross_entropy_rows(logits.size(), targets.size(), loss.size(), counted.size(), classes);
  std::vector<float> losses(static_cast<std::size_t>(rows));
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / classes);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t target = targets.data()[i];
      if (target < 0) continue;
      float& of_row = losses[static_cast<std::size_t>(i)];
      of_row = not_a_number;
      if (target >= classes) continue;
      const auto from = logits.data() + i * classes;
      const softmax_row row = softmax_of(from, classes);
      of_row = row_loss(row.top, row.sum, from[target]);
    }
  });
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < rows; ++i) count += targets.data()[i] >= 0 ? 1 : 0;
  const float sum = slot_sum<total_slots>(
      rows, [&](std::int64_t i) { return losses[static_cast<std::size_t>(i)]; });
  loss[0] = count == 0 ? 0.0f : sum / static_cast<float>(count);
  counted[0] = static_cast<float>(count);
}

void softmax_cross_entropy_grad_cpu(cpu_call& call, read<float> logits, read<std::int32_t> targets,
                                    read<float> counted, read<float> dloss, write<float> dlogits,
                                    std::int64_t classes) {
  const std::int64_t rows = cross_entropy_grad_rows(logits.size(), targets.size(), counted.size(),
                                                    dloss.size(), dlogits.size(), classes);
  const float scale = dloss[0] / counted[0];
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / classes);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t target = targets.data()[i];
      const auto to = dlogits.data() + i * classes;
      if (target >= 0 && target < classes) {
        write_gradient(logits.data() + i * classes, classes, target, scale, to);
      } else {
        const float value = target < 0 ? 0.0f : not_a_number;
        for (std::int64_t j = 0; j < classes; ++j) to[j] = value;
      }
    }
  });
}

}  // namespace ops

namespace {

std::size_t losses_workspace(read<float>, read<std::int32_t> targets, write<float>, write<float>,
                             std::int64_t) {
  return targets.size() * sizeof(float);
}

}  // namespace

void add_softmax_cross_entropy(kernel_registry& registry) {
  registry.add(softmax_cross_entropy,
               {{device_kind::cpu, "generic", ops::softmax_cross_entropy_cpu},
                {.device = device_kind::cuda,
                 .arch = "sm_80",
                 .body = REPRISE_CUDA_BODY(ops::softmax_cross_entropy_cuda),
                 .workspace_bytes = losses_workspace}});
  registry.add(
      softmax_cross_entropy_grad,
      {{device_kind::cpu, "generic", ops::softmax_cross_entropy_grad_cpu},
       {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::softmax_cross_entropy_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
