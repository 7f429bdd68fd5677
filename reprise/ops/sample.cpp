#include "reprise/ops/sample.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/greatest.hpp"
#include "reprise/ops/math.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/sample_rules.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

constexpr std::size_t lanes = 16;

template <class V>
[[gnu::always_inline]] inline V exponential(const V& logit, float greatest, float inverse) {
  return math::exp<V>((logit - math::fill<V>(greatest)) * math::fill<V>(inverse));
}

void write_keys(pointer_to<const float> logits, float greatest, float inverse,
                std::vector<weight_key>& keys) {
  std::size_t i = 0;
  for (; i + lanes <= keys.size(); i += lanes) {
    math::f32x16 chunk;
    read_elements(logits + i, lanes, &chunk);
    chunk = exponential<math::f32x16>(chunk, greatest, inverse);
    float values[lanes];
    std::memcpy(values, &chunk, sizeof values);
    for (std::size_t lane = 0; lane < lanes; ++lane) keys[i + lane] = key_of(values[lane]);
  }
  for (; i < keys.size(); ++i) keys[i] = key_of(exponential<float>(logits[i], greatest, inverse));
}

std::uint64_t sum_of_weights(const std::vector<weight_key>& keys) {
  std::uint64_t sum = 0;
  for (const weight_key key : keys) sum += weight_of(key);
  return sum;
}

// Digit by digit from the top: the digit at which the sum of heavier weights passes `need`.
nucleus find_nucleus(const std::vector<weight_key>& keys, std::uint64_t need) {
  std::array<std::uint64_t, std::size_t{1} << first_digit_bits> bins;
  weight_key prefix = 0;
  std::uint64_t above = 0;
  for (int digit = 0; digit < digit_count; ++digit) {
    const int bits = digit_bits(digit);
    const int shift = digit_shift(digit);
    const std::size_t count = std::size_t{1} << bits;
    std::fill_n(bins.begin(), count, std::uint64_t{0});
    for (const weight_key key : keys) {
      if (key < 0 || key >> (shift + bits) != prefix) continue;
      bins[static_cast<std::size_t>(key >> shift) & (count - 1)] += weight_of(key);
    }
    std::size_t at = count - 1;
    while (above + bins[at] < need) above += bins[at--];  // ends: the sum of all is enough
    prefix = (prefix << bits) | static_cast<weight_key>(at);
  }
  return nucleus_at(prefix, above, need);
}

// The first token at which the running sum of kept weights exceeds the target.
std::int32_t draw(const std::vector<weight_key>& keys, const nucleus& kept, std::uint64_t word) {
  const auto walk = [&](auto&& stop_at) {
    std::uint64_t sum = 0;
    std::uint32_t ties = kept.ties;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] < kept.edge || (keys[i] == kept.edge && ties == 0)) continue;
      if (keys[i] == kept.edge) --ties;
      sum += weight_of(keys[i]);
      if (stop_at(sum)) return std::pair{sum, static_cast<std::int32_t>(i)};
    }
    return std::pair{sum, std::int32_t{0}};
  };
  const std::uint64_t total = walk([](std::uint64_t) { return false; }).first;
  const std::uint64_t target = multiply_high(word, total);
  return walk([target](std::uint64_t sum) { return sum > target; }).second;
}

}  // namespace

std::int64_t sample_rows(const sample_sizes& sizes, std::int64_t width) {
  if (width > max_sample_width) {
    throw usage_error{fmt::format("sample: rows of {} logits; at most {} can be summed exactly",
                                  width, max_sample_width)};
  }
  const std::int64_t rows = whole_rows("sample", "logits", sizes.logits, width);
  const auto each = static_cast<std::size_t>(rows);
  need_elements("sample", "temperatures", sizes.temperatures, each);
  need_elements("sample", "top_ps", sizes.top_ps, each);
  need_elements("sample", "seeds", sizes.seeds, each);
  need_elements("sample", "counters", sizes.counters, each);
  need_elements("sample", "out", sizes.out, each);
  return rows;
}

void sample_cpu(cpu_call& call, read<float> logits, read<float> temperatures, read<float> top_ps,
                read<std::uint64_t> seeds, read<std::uint64_t> counters, write<std::int32_t> out,
                std::int64_t width) {
  const std::int64_t rows = sample_rows({logits.size(), temperatures.size(), top_ps.size(),
                                         seeds.size(), counters.size(), out.size()},
                                        width);
  call.parallel_for(rows, 1, [&](std::int64_t first, std::int64_t last) {
    std::vector<weight_key> keys(static_cast<std::size_t>(width));
    for (std::int64_t row = first; row < last; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const auto from = logits.data() + row * width;
      const greatest top = greatest_of(from, width);
      const float inverse = 1.0f / temperatures[at];
      if (!is_drawn(top, temperatures[at], inverse)) {
        out[at] = token_of(top);
        continue;
      }
      write_keys(from, top.value, inverse, keys);
      nucleus kept;
      if (!keeps_all(top_ps[at])) {
        kept = find_nucleus(keys, share_of(sum_of_weights(keys), top_ps[at]));
      }
      out[at] = draw(keys, kept, random_word(seeds[at], counters[at]));
    }
  });
}

}  // namespace ops

void add_sample(kernel_registry& registry) {
  registry.add(sample, {{device_kind::cpu, "generic", ops::sample_cpu},
                        {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::sample_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
