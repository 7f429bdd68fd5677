#include "reprise/sdm/projection.hpp"

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/sigmoid.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

using ops::need_elements;
using ops::whole_rows;

void need_widths(const char* op, std::int64_t width, std::int64_t key_width) {
  whole_rows(op, "a value", 0, width);
  whole_rows(op, "half a query", 0, key_width);
}

}  // namespace

std::int64_t split_rows(std::size_t z, std::size_t v, std::size_t first, std::size_t second,
                        std::size_t beta, std::size_t g, std::int64_t width,
                        std::int64_t key_width) {
  constexpr const char* op = "sdm_split";
  need_widths(op, width, key_width);
  const std::int64_t rows = whole_rows(op, "z", z, projected(width, key_width));
  const auto m = static_cast<std::size_t>(rows);
  need_elements(op, "v", v, m * static_cast<std::size_t>(width));
  need_elements(op, "first", first, 2 * m * static_cast<std::size_t>(key_width));
  need_elements(op, "second", second, 2 * m * static_cast<std::size_t>(key_width));
  need_elements(op, "beta", beta, m);
  need_elements(op, "g", g, m);
  return rows;
}

std::int64_t join_rows(std::size_t dv, std::size_t dfirst, std::size_t dsecond, std::size_t dbeta,
                       std::size_t dg, std::size_t beta, std::size_t g, std::size_t dz,
                       std::int64_t width, std::int64_t key_width) {
  constexpr const char* op = "sdm_join";
  need_widths(op, width, key_width);
  const std::int64_t rows = whole_rows(op, "dz", dz, projected(width, key_width));
  const auto m = static_cast<std::size_t>(rows);
  need_elements(op, "dv", dv, m * static_cast<std::size_t>(width));
  need_elements(op, "dfirst", dfirst, 2 * m * static_cast<std::size_t>(key_width));
  need_elements(op, "dsecond", dsecond, 2 * m * static_cast<std::size_t>(key_width));
  need_elements(op, "dbeta", dbeta, m);
  need_elements(op, "dg", dg, m);
  need_elements(op, "beta", beta, m);
  need_elements(op, "g", g, m);
  return rows;
}

void split_cpu(cpu_call& call, read<float> z, write<float> v, write<float> first,
               write<float> second, write<float> beta, write<float> g, std::int64_t width,
               std::int64_t key_width, float offset) {
  const std::int64_t rows = split_rows(z.size(), v.size(), first.size(), second.size(), beta.size(),
                                       g.size(), width, key_width);
  const std::int64_t columns = projected(width, key_width);
  call.parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto from = z.data() + row * columns;
      for (std::int64_t j = 0; j < width; ++j) v.data()[row * width + j] = from[j];
      for (std::int64_t j = 0; j < key_width; ++j) {
        const std::int64_t write_at = row * key_width + j;
        const std::int64_t read_at = (rows + row) * key_width + j;
        first.data()[write_at] = from[width + j];
        second.data()[write_at] = from[width + key_width + j];
        first.data()[read_at] = from[width + 2 * key_width + j];
        second.data()[read_at] = from[width + 3 * key_width + j];
      }
      const float strength = from[columns - 2];
      const float retention = from[columns - 1];
      beta.data()[row] = ops::sigmoid_of(strength).value;
      g.data()[row] = log_sigmoid(math::add(retention, offset));
    }
  });
}

void join_cpu(cpu_call& call, read<float> dv, read<float> dfirst, read<float> dsecond,
              read<float> dbeta, read<float> dg, read<float> beta, read<float> g, write<float> dz,
              std::int64_t width, std::int64_t key_width) {
  const std::int64_t rows =
      join_rows(dv.size(), dfirst.size(), dsecond.size(), dbeta.size(), dg.size(), beta.size(),
                g.size(), dz.size(), width, key_width);
  const std::int64_t columns = projected(width, key_width);
  call.parallel_for(rows, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const auto to = dz.data() + row * columns;
      for (std::int64_t j = 0; j < width; ++j) to[j] = dv.data()[row * width + j];
      for (std::int64_t j = 0; j < key_width; ++j) {
        const std::int64_t write_at = row * key_width + j;
        const std::int64_t read_at = (rows + row) * key_width + j;
        to[width + j] = dfirst.data()[write_at];
        to[width + key_width + j] = dsecond.data()[write_at];
        to[width + 2 * key_width + j] = dfirst.data()[read_at];
        to[width + 3 * key_width + j] = dsecond.data()[read_at];
      }
      to[columns - 2] = dstrength(dbeta.data()[row], beta.data()[row]);
      to[columns - 1] = dretention(dg.data()[row], g.data()[row]);
    }
  });
}

}  // namespace sdm

void add_sdm_projection(kernel_registry& registry) {
  registry.add(sdm_split, {{device_kind::cpu, "generic", sdm::split_cpu},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::split_cuda)}});
  registry.add(sdm_join, {{device_kind::cpu, "generic", sdm::join_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::join_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
