#include "reprise/ops/argmax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "reprise/base/error.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/greatest.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

std::int64_t argmax_rows(std::size_t logits, std::size_t out, std::int64_t width) {
  if (width > std::numeric_limits<std::int32_t>::max()) {
    throw usage_error{
        fmt::format("argmax: rows of {}, but tokens are 32 bits wide; give shorter rows", width)};
  }
  const std::int64_t rows = whole_rows("argmax", "logits", logits, width);
  need_elements("argmax", "out", out, static_cast<std::size_t>(rows));
  return rows;
}

void argmax_cpu(cpu_call& call, read<float> logits, write<std::int32_t> out, std::int64_t width) {
  const std::int64_t rows = argmax_rows(logits.size(), out.size(), width);
  const std::int64_t grain = std::max<std::int64_t>(1, 32768 / width);
  call.parallel_for(rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      out.data()[row] = token_of(greatest_of(logits.data() + row * width, width));
    }
  });
}

}  // namespace ops

void add_argmax(kernel_registry& registry) {
  registry.add(argmax, {{device_kind::cpu, "generic", ops::argmax_cpu},
                        {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::argmax_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
