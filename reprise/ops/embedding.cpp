#include "reprise/ops/embedding.hpp"

#include <algorithm>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

std::int64_t embedding_vocabulary(std::size_t tokens, std::size_t table, std::size_t out,
                                  std::int64_t width) {
  const std::int64_t vocabulary = whole_rows("embedding", "the table", table, width);
  need_elements("embedding", "out", out, tokens * static_cast<std::size_t>(width));
  return vocabulary;
}

template <class A, class W>
void embedding_cpu(cpu_call& call, read<std::int32_t> tokens, read<W> table, write<A> out,
                   std::int64_t width) {
  const std::int64_t vocabulary =
      embedding_vocabulary(tokens.size(), table.size(), out.size(), width);
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / width);
  call.parallel_for(static_cast<std::int64_t>(tokens.size()), grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t i = first; i < last; ++i) {
                        const std::int64_t token = tokens.data()[i];
                        const auto to = out.data() + i * width;
                        if (token < 0 || token >= vocabulary) {
                          std::fill_n(to, width, narrow<A>(0.0f));
                          continue;
                        }
                        const auto from = table.data() + token * width;
                        for (std::int64_t j = 0; j < width; ++j) to[j] = narrow<A>(widen(from[j]));
                      }
                    });
}

}  // namespace ops

namespace {

template <class A, class W>
void add_embedding_of(kernel_registry& registry) {
  registry.add(embedding<A, W>,
               {{device_kind::cpu, "generic", ops::embedding_cpu<A, W>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY((ops::embedding_cuda<A, W>))}});
}

}  // namespace

void add_embedding(kernel_registry& registry) {
  add_embedding_of<float, float>(registry);
  add_embedding_of<float, bf16>(registry);
  add_embedding_of<bf16, bf16>(registry);
}

}  // namespace reprise::REPRISE_BODIES
