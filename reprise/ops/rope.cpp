#include "reprise/ops/rope.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

std::vector<float> rope_inverse_frequencies(std::int64_t head_dim, double theta) {
  std::vector<float> frequencies(static_cast<std::size_t>(head_dim / 2));
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_dim);
    frequencies[i] = static_cast<float>(std::pow(theta, exponent));
  }
  return frequencies;
}

namespace ops {

namespace {

// Pairs at a time whose sines and cosines are kept while all heads are turned.
constexpr std::int64_t rope_tile = 128;

template <class A>
void turn_row(pointer_to<A> x, std::int32_t position, pointer_to<const float> frequencies,
              std::int64_t heads, std::int64_t half) {
  float s[rope_tile];
  float c[rope_tile];
  for (std::int64_t begin = 0; begin < half; begin += rope_tile) {
    const std::int64_t count = std::min(rope_tile, half - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      math::sincos(static_cast<float>(position) * frequencies[begin + i], s[i], c[i]);
    }
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto first = x + head * 2 * half + begin;
      const auto second = first + half;
      for (std::int64_t i = 0; i < count; ++i) {
        const float u = widen(first[i]);
        const float v = widen(second[i]);
        first[i] = narrow<A>(u * c[i] - v * s[i]);
        second[i] = narrow<A>(v * c[i] + u * s[i]);
      }
    }
  }
}

}  // namespace

void check_rope(std::size_t x, std::size_t positions, std::size_t inverse_frequencies,
                std::int64_t heads, std::int64_t head_dim) {
  if (heads < 1 || head_dim < 2 || head_dim % 2 != 0) {
    throw usage_error{
        fmt::format("rope: {} heads of {}; give at least one head, of an even number of elements",
                    heads, head_dim)};
  }
  const auto rows = static_cast<std::size_t>(whole_rows("rope", "x", x, heads * head_dim));
  need_elements("rope", "positions", positions, rows);
  need_elements("rope", "inverse_frequencies", inverse_frequencies,
                static_cast<std::size_t>(head_dim / 2));
}

template <class A>
void rope_cpu(cpu_call& call, inout<A> x, read<std::int32_t> positions,
              read<float> inverse_frequencies, std::int64_t heads, std::int64_t head_dim) {
  check_rope(x.size(), positions.size(), inverse_frequencies.size(), heads, head_dim);
  const std::int64_t width = heads * head_dim;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / width);
  call.parallel_for(static_cast<std::int64_t>(positions.size()), grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t row = first; row < last; ++row) {
                        turn_row(x.data() + row * width, positions.data()[row],
                                 inverse_frequencies.data(), heads, head_dim / 2);
                      }
                    });
}

}  // namespace ops

namespace {

template <class A>
void add_rope_of(kernel_registry& registry) {
  registry.add(rope<A>, {{device_kind::cpu, "generic", ops::rope_cpu<A>},
                         {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::rope_cuda<A>)}});
}

}  // namespace

void add_rope(kernel_registry& registry) {
  add_rope_of<float>(registry);
  add_rope_of<bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
