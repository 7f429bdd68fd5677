#include "bench/sdm/sdm_call.hpp"

#include <algorithm>
#include <cstddef>

#include "bench/grad/layer.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise::bench {

namespace {

// [0, 1)
float unit(std::mt19937_64& random) {
  return static_cast<float>(random() >> 40) * 0x1p-24F;
}

std::vector<float> draw_weights(std::int64_t tokens, std::int64_t each, std::mt19937_64& random) {
  std::vector<float> weights;
  std::vector<float> token(static_cast<std::size_t>(each));
  for (std::int64_t t = 0; t < tokens; ++t) {
    float sum = 0;
    for (float& one : token) sum += one = 1.0F + unit(random);
    for (const float one : token) weights.push_back(one / sum);
  }
  return weights;
}

template <class T>
buffer<T> on_device(pool& memory, stream_ref stream, const std::vector<T>& host) {
  buffer<T> made{memory, host.size(), stream};
  copy(stream, read<T>{view<const T>{host.data(), host.size()}}, write{made});
  return made;
}

buffer<float> numbers(pool& memory, stream_ref stream, std::int64_t count, int seed) {
  buffer<float> made{memory, static_cast<std::size_t>(count), stream};
  fill_numbers(stream, made, seed);
  return made;
}

}  // namespace

std::vector<std::int32_t> draw_slots(const sdm_sizes& sizes, std::int64_t each,
                                     std::mt19937_64& random) {
  std::vector<std::int32_t> rows;
  std::vector<std::int32_t> token;
  const auto slots = static_cast<std::uint64_t>(sizes.slots);
  for (std::int64_t p = 0; p < sizes.streams; ++p) {
    for (std::int64_t t = 0; t < sizes.tokens; ++t) {
      token.clear();
      while (static_cast<std::int64_t>(token.size()) < each) {
        const auto slot = static_cast<std::int32_t>((random() >> 32) * slots >> 32);
        const auto place = std::ranges::lower_bound(token, slot);
        if (place == token.end() || *place != slot) token.insert(place, slot);
      }
      for (const std::int32_t slot : token) {
        rows.push_back(static_cast<std::int32_t>(p * sizes.slots) + slot);
      }
    }
  }
  return rows;
}

sdm_call::sdm_call(pool& memory, stream_ref stream, const sdm_sizes& of, int seed) : sizes{of} {
  std::mt19937_64 random{static_cast<std::uint64_t>(seed)};
  const std::int64_t tokens = of.streams * of.tokens;
  k_idx = on_device(memory, stream, draw_slots(of, of.writes, random));
  q_idx = on_device(memory, stream, draw_slots(of, of.reads, random));
  k_val = on_device(memory, stream, draw_weights(tokens, of.writes, random));
  q_val = on_device(memory, stream, draw_weights(tokens, of.reads, random));
  std::vector<float> strengths;
  std::vector<float> decays;
  for (std::int64_t t = 0; t < tokens; ++t) {
    strengths.push_back(0.5F + 0.5F * unit(random));
    decays.push_back(-0.05F * unit(random));
  }
  beta = on_device(memory, stream, strengths);
  g = on_device(memory, stream, decays);
  v = numbers(memory, stream, tokens * of.width, seed);
  dy = numbers(memory, stream, tokens * of.width, seed + 1);
  stream.synchronize();
}

std::vector<operand> sdm_call::operands_for(const sparse_delta_memory<bf16>& op) const {
  const std::int64_t p = sizes.streams;
  const std::int64_t t = sizes.tokens;
  return {operand{op.k_idx(k_idx.all(), {p, t, sizes.writes})},
          operand{op.k_val(k_val.all(), {p, t, sizes.writes})},
          operand{op.v(v.all(), {p, t, sizes.width})},
          operand{op.beta(beta.all(), {p, t, 1})},
          operand{op.g(g.all(), {p, t, 1})},
          operand{op.q_idx(q_idx.all(), {p, t, sizes.reads})},
          operand{op.q_val(q_val.all(), {p, t, sizes.reads})}};
}

sdm_bank::sdm_bank(pool& memory, stream_ref stream, std::int64_t slots, std::int64_t width)
    : value{memory, static_cast<std::size_t>(slots * width), stream},
      gradient{memory, value.size(), stream} {
  constexpr std::size_t part = std::size_t{1} << 20;
  const std::size_t first = std::min(part, value.size());
  fill_numbers(stream, value.all().subview(0, first), 1);
  for (std::size_t begin = first; begin < value.size(); begin += part) {
    const std::size_t count = std::min(part, value.size() - begin);
    copy(stream, read<float>{value.all().subview(0, count)},
         write<float>{value.all().subview(begin, count)});
  }
  at.value = as_tensor(value.all(), {slots, width});
  at.grad = as_tensor(gradient.all(), {slots, width});
}

}  // namespace reprise::bench
