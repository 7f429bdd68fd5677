#include "reprise/ops/random.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/philox.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

// Philox blocks at a time, side by side, so that the compiler can use vectors.
constexpr std::int64_t batch = 16;

// words[w][i]: word w of block first + i, as philox() gives it.
void philox_batch(std::uint64_t key, std::uint64_t first, std::uint64_t high,
                  std::uint32_t (&words)[4][batch]) {
  for (std::int64_t i = 0; i < batch; ++i) {
    const std::uint64_t low = first + static_cast<std::uint64_t>(i);
    words[0][i] = static_cast<std::uint32_t>(low);
    words[1][i] = static_cast<std::uint32_t>(low >> 32);
    words[2][i] = static_cast<std::uint32_t>(high);
    words[3][i] = static_cast<std::uint32_t>(high >> 32);
  }
  philox_keys keys{key};
  for (int round = 0; round < philox_rounds; ++round) {
    for (std::int64_t i = 0; i < batch; ++i) {
      philox_words one{{words[0][i], words[1][i], words[2][i], words[3][i]}};
      philox_round(one, keys);
      for (int w = 0; w < 4; ++w) words[w][i] = one.at[w];
    }
    keys.next();
  }
}

// Elements [first, last), at most two a block of the batch; first is even.
template <class T>
void draw_batch(pointer_to<T> out, std::int64_t first, std::int64_t last, std::uint64_t seed,
                std::uint64_t stream, float factor) {
  std::uint32_t words[4][batch];
  philox_batch(seed, static_cast<std::uint64_t>(first / 2), stream, words);
  float values[2 * batch];
  for (std::int64_t i = 0; i < batch; ++i) {
    values[2 * i] = centred_sum(words[0][i], words[1][i]) * factor;
    values[2 * i + 1] = centred_sum(words[2][i], words[3][i]) * factor;
  }
  for (std::int64_t i = first; i < last; ++i) out[i] = narrow<T>(values[i - first]);
}

}  // namespace

template <class T>
void random_normal_cpu(cpu_call& call, write<T> out, std::uint64_t seed, std::uint64_t stream,
                       float scale) {
  const auto size = static_cast<std::int64_t>(out.size());
  const float factor = scale / centred_sum_deviation;
  const std::int64_t step = 2 * batch;
  call.parallel_for((size + step - 1) / step, 64, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first * step; at < std::min(last * step, size); at += step) {
      draw_batch(out.data(), at, std::min(at + step, size), seed, stream, factor);
    }
  });
}

}  // namespace ops

namespace {

template <class T>
void add_random_of(kernel_registry& registry) {
  registry.add(random_normal<T>,
               {{device_kind::cpu, "generic", ops::random_normal_cpu<T>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::random_normal_cuda<T>)}});
}

}  // namespace

void add_random(kernel_registry& registry) {
  add_random_of<float>(registry);
  add_random_of<bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
