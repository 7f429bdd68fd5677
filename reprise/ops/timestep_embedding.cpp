#include "reprise/ops/timestep_embedding.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

void check_timestep_embedding(std::size_t times, std::size_t out, std::int64_t width) {
  if (width < 2 || width % 2 != 0) {
    throw usage_error{
        fmt::format("timestep_embedding: width is {}; give an even one, 2 at least", width)};
  }
  need_elements("timestep_embedding", "out", out, times * static_cast<std::size_t>(width));
}

void timestep_embedding_cpu(cpu_call& call, read<float> times, write<float> out,
                            std::int64_t width) {
  check_timestep_embedding(times.size(), out.size(), width);
  const std::int64_t half = width / 2;
  call.parallel_for(static_cast<std::int64_t>(times.size()), 64,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t row = first; row < last; ++row) {
                        const float time = times.data()[row];
                        const auto to = out.data() + row * width;
                        for (std::int64_t j = 0; j < half; ++j) {
                          float sine = 0;
                          float cosine = 0;
                          math::sincos(time * timestep_frequency(j, half), sine, cosine);
                          to[j] = cosine;
                          to[half + j] = sine;
                        }
                      }
                    });
}

}  // namespace ops

void add_timestep_embedding(kernel_registry& registry) {
  registry.add(timestep_embedding,
               {{device_kind::cpu, "generic", ops::timestep_embedding_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::timestep_embedding_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
