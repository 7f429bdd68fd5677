#include "reprise/sdm/step.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/sdm/step_sizes.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

constexpr std::int64_t slice = 256;  // neighbouring columns that a thread takes at a time

template <class X>
X decay_of(X g) {
  if constexpr (std::is_same_v<X, double>) {
    return std::exp(g);
  } else {
    return math::exp(g);
  }
}

template <class B, class X>
struct step {
  pointer_to<B> bank;
  pointer_to<const std::int32_t> k_idx;
  pointer_to<const X> k_val, v, beta, g;
  pointer_to<const std::int32_t> q_idx;
  pointer_to<const X> q_val;
  pointer_to<X> readings;
  sdm_sizes sizes;

  // Columns [begin, begin + count) of stream p, at most a slice of them.
  void operator()(std::int64_t p, std::int64_t begin, std::int64_t count) const {
    B row[slice];
    X delta[slice] = {};  // what is recalled, then the delta
    X wanted[slice];
    for (std::int64_t w = 0; w < sizes.writes; ++w) {
      const std::int64_t from = row_at(p, k_idx[p * sizes.writes + w]);
      if (from < 0) continue;
      const X weight = k_val[p * sizes.writes + w] * decay(p, w);
      read_elements(bank + from + begin, static_cast<std::size_t>(count), row);
      for (std::int64_t j = 0; j < count; ++j) delta[j] += weight * widened<X>(row[j]);
    }
    read_elements(v + p * sizes.width + begin, static_cast<std::size_t>(count), wanted);
    const X strength = beta[p];
    for (std::int64_t j = 0; j < count; ++j) delta[j] = strength * (wanted[j] - delta[j]);

    if (REPRISE_MUTANT(sdm_step_reads_before_it_writes)) read_rows(p, begin, count);
    for (std::int64_t w = 0; w < sizes.writes; ++w) {
      const std::int64_t at = row_at(p, k_idx[p * sizes.writes + w]);
      if (at < 0) continue;
      const X k = k_val[p * sizes.writes + w];
      const X a = decay(p, w);
      read_elements(bank + at + begin, static_cast<std::size_t>(count), row);
      for (std::int64_t j = 0; j < count; ++j) {
        row[j] = stored<B>(a * widened<X>(row[j]) + k * delta[j]);
      }
      write_elements(row, static_cast<std::size_t>(count), bank + at + begin);
    }
    if (!REPRISE_MUTANT(sdm_step_reads_before_it_writes)) read_rows(p, begin, count);
  }

  void read_rows(std::int64_t p, std::int64_t begin, std::int64_t count) const {
    B row[slice];
    X sums[slice] = {};
    for (std::int64_t n = 0; n < sizes.reads; ++n) {
      const std::int64_t from = row_at(p, q_idx[p * sizes.reads + n]);
      if (from < 0) continue;
      const X weight = q_val[p * sizes.reads + n];
      read_elements(bank + from + begin, static_cast<std::size_t>(count), row);
      for (std::int64_t j = 0; j < count; ++j) sums[j] += weight * widened<X>(row[j]);
    }
    write_elements(sums, static_cast<std::size_t>(count), readings + p * sizes.width + begin);
  }

  X decay(std::int64_t p, std::int64_t w) const {
    return decay_of<X>(g[sizes.decays == 1 ? p : p * sizes.decays + w]);
  }

  // Where a row begins; -1 of an index that is none of the stream's.
  std::int64_t row_at(std::int64_t p, std::int32_t index) const {
    const std::int64_t slot = index - p * sizes.slots;
    return slot < 0 || slot >= sizes.slots ? -1 : index * sizes.width;
  }
};

}  // namespace

template <class B, class X>
void step_cpu(cpu_call& call, inout<B> bank, read<std::int32_t> k_idx, read<X> k_val, read<X> v,
              read<X> beta, read<X> g, read<std::int32_t> q_idx, read<X> q_val, write<X> readings,
              sdm_sizes sizes) {
  need_step(sizes, bank, k_idx, k_val, v, beta, g, q_idx, q_val, readings);
  const step<B, X> columns{bank.data(), k_idx.data(), k_val.data(), v.data(),        beta.data(),
                           g.data(),    q_idx.data(), q_val.data(), readings.data(), sizes};
  const std::int64_t slices = (sizes.width + slice - 1) / slice;
  const std::int64_t grain = std::max<std::int64_t>(
      1, (1 << 15) / (std::min(slice, sizes.width) * (2 * sizes.writes + sizes.reads)));
  call.parallel_for(sizes.streams * slices, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t at = first; at < last; ++at) {
      const std::int64_t begin = at % slices * slice;
      columns(at / slices, begin, std::min(slice, sizes.width - begin));
    }
  });
}

}  // namespace sdm

void add_sdm_step(kernel_registry& registry) {
  registry.add(sdm_step<float>,
               {{device_kind::cpu, "generic", sdm::step_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::step_cuda<float>)}});
  registry.add(sdm_step<bf16>,
               {{device_kind::cpu, "generic", sdm::step_cpu<bf16>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::step_cuda<bf16>)}});
  registry.add(sdm_step<double>, {{device_kind::cpu, "generic", sdm::step_cpu<double>}});
}

}  // namespace reprise::REPRISE_BODIES
