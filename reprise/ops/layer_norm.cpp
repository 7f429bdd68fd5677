#include "reprise/ops/layer_norm.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

// The sum of term(x[l]) over a row, in the order of the header.
template <class Term>
float sum_of(pointer_to<const float> x, std::int64_t width, Term&& term) {
  float slots[layer_norm_slots] = {};
  for (std::int64_t begin = 0; begin < width; begin += layer_norm_slots) {
    const std::int64_t count = std::min<std::int64_t>(width - begin, layer_norm_slots);
    for (std::int64_t s = 0; s < count; ++s) slots[s] += term(x[begin + s]);
  }
  for (int half = layer_norm_slots / 2; half > 0; half /= 2) {
    for (int s = 0; s < half; ++s) slots[s] += slots[s + half];
  }
  return slots[0];
}

}  // namespace

std::int64_t layer_norm_rows(std::size_t x, std::size_t gain, std::size_t bias, std::size_t y,
                             std::int64_t width) {
  const std::int64_t rows = whole_rows("layer_norm", "x", x, width);
  need_elements("layer_norm", "the gain", gain, static_cast<std::size_t>(width));
  need_elements("layer_norm", "the bias", bias, static_cast<std::size_t>(width));
  need_elements("layer_norm", "y", y, x);
  return rows;
}

void layer_norm_cpu(cpu_call& call, read<float> x, read<float> gain, read<float> bias,
                    write<float> y, std::int64_t width, float eps) {
  const std::int64_t rows = layer_norm_rows(x.size(), gain.size(), bias.size(), y.size(), width);
  const std::int64_t grain = std::max<std::int64_t>(1, 8192 / width);
  const auto count = static_cast<float>(width);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto from = x.data() + row * width;
      const auto to = y.data() + row * width;
      const float mean = sum_of(from, width, [](float value) { return value; }) / count;
      const float squares = sum_of(from, width, [mean](float value) {
        const float off = value - mean;
        return off * off;
      });
      const float inverse = 1.0f / math::sqrt(squares / count + eps);
      for (std::int64_t j = 0; j < width; ++j) {
        to[j] = (((from[j] - mean) * inverse) * gain.data()[j]) + bias.data()[j];
      }
    }
  });
}

}  // namespace ops

void add_layer_norm(kernel_registry& registry) {
  registry.add(layer_norm, {{device_kind::cpu, "generic", ops::layer_norm_cpu},
                            {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::layer_norm_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
