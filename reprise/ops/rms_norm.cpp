#include "reprise/ops/rms_norm.hpp"

#include <algorithm>
#include <bit>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

template <class A>
float sum_of_squares(pointer_to<const A> x, std::int64_t width) {
  float slots[rms_norm_slots];
  // Slots past the last element would hold zeros, which change no sum: fold only a power of two.
  const auto used = static_cast<std::int64_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(width, rms_norm_slots))));
  std::fill_n(slots, used, 0.0f);
  for (std::int64_t begin = 0; begin < width; begin += rms_norm_slots) {
    const std::int64_t count = std::min<std::int64_t>(width - begin, rms_norm_slots);
    for (std::int64_t s = 0; s < count; ++s) {
      const float value = widen(x[begin + s]);
      slots[s] += value * value;
    }
  }
  for (std::int64_t half = used / 2; half > 0; half /= 2) {
    for (std::int64_t s = 0; s < half; ++s) slots[s] = slots[2 * s] + slots[2 * s + 1];
  }
  return slots[0];
}

}  // namespace

std::int64_t rms_norm_rows(std::size_t x, std::size_t gain, std::size_t y, std::int64_t width) {
  const std::int64_t rows = whole_rows("rms_norm", "x", x, width);
  need_elements("rms_norm", "gain", gain, static_cast<std::size_t>(width));
  need_elements("rms_norm", "y", y, x);
  return rows;
}

template <class A, class W>
void rms_norm_cpu(cpu_call& call, read<A> x, read<W> gain, write<A> y, std::int64_t width,
                  float eps) {
  const std::int64_t rows = rms_norm_rows(x.size(), gain.size(), y.size(), width);
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / width);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const auto from = x.data() + row * width;
      const auto to = y.data() + row * width;
      const float mean = sum_of_squares(from, width) / static_cast<float>(width);
      const float inverse = 1.0f / math::sqrt(mean + eps);
      for (std::int64_t j = 0; j < width; ++j) {
        to[j] = narrow<A>((widen(from[j]) * inverse) * widen(gain.data()[j]));
      }
    }
  });
}

}  // namespace ops

namespace {

template <class A, class W>
void add_rms_norm_of(kernel_registry& registry) {
  registry.add(rms_norm<A, W>,
               {{device_kind::cpu, "generic", ops::rms_norm_cpu<A, W>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY((ops::rms_norm_cuda<A, W>))}});
}

}  // namespace

void add_rms_norm(kernel_registry& registry) {
  add_rms_norm_of<float, float>(registry);
  add_rms_norm_of<float, bf16>(registry);
  add_rms_norm_of<bf16, bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
