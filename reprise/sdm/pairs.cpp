#include "reprise/sdm/pairs.hpp"

#include <algorithm>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/sdm/extents.hpp"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

// One chunk of a stream, and where its arrays begin.
template <class X>
struct chunk_of_pairs {
  pointer_to<const std::int32_t> order, place, run_of, runs;
  pointer_to<const double> level;
  pointer_to<const X> k_val;  // of the chunk's first token
  std::int32_t token_events, writes;

  // Adds to to[s] what `event`, of that weight, has of each token s < end that wrote its slot
  // before. Of a token that names the slot twice the first write counts.
  void add_terms(std::int32_t event, X weight, std::int32_t end, pointer_to<X> to) const {
    const std::int32_t here = place[event];
    if (here < 0) return;
    std::int32_t last = -1;
    for (std::int32_t i = runs[run_of[event]]; i < here; ++i) {
      const std::int32_t earlier = order[i];
      const std::int32_t s = earlier / token_events;
      const std::int32_t w = earlier % token_events;
      if (w >= writes || s >= end || s == last) continue;
      last = s;
      to[s] += weight * k_val[s * writes + w] * decay_between<X>(level[event], level[earlier]);
    }
  }
};

}  // namespace

template <class X>
void check_pairs(read<std::int32_t> order, read<std::int32_t> place, read<std::int32_t> run_of,
                 read<std::int32_t> runs, read<X> k_val, read<X> q_val, read<double> level,
                 write<X> recalls, write<X> readings, const sdm_sizes& sizes) {
  extents{"sdm_pairs", sizes}
      .by_chunk("order", order.size(), sizes.events())
      .by_chunk("place", place.size(), sizes.events())
      .by_chunk("run_of", run_of.size(), sizes.events())
      .by_chunk("runs", runs.size(), sizes.events() + 1)
      .by_token("k_val", k_val.size(), sizes.writes)
      .by_token("q_val", q_val.size(), sizes.reads)
      .by_chunk("level", level.size(), sizes.events())
      .by_chunk("recalls", recalls.size(), sizes.chunk * sizes.chunk)
      .by_chunk("readings", readings.size(), sizes.chunk * sizes.chunk);
}

template <class X>
void check_invert(read<X> recalls, read<X> beta, write<X> inverse, const sdm_sizes& sizes) {
  extents{"sdm_invert", sizes}
      .by_chunk("recalls", recalls.size(), sizes.chunk * sizes.chunk)
      .by_token("beta", beta.size(), 1)
      .by_chunk("inverse", inverse.size(), sizes.chunk * sizes.chunk);
}

template <class X>
void pairs_cpu(cpu_call& call, read<std::int32_t> order, read<std::int32_t> place,
               read<std::int32_t> run_of, read<std::int32_t> runs, read<X> k_val, read<X> q_val,
               read<double> level, write<X> recalls, write<X> readings, sdm_sizes sizes) {
  check_pairs(order, place, run_of, runs, k_val, q_val, level, recalls, readings, sizes);
  const std::int64_t events = sizes.events();
  const std::int64_t grain =
      std::max<std::int64_t>(1, 4096 / (sizes.chunk + 4 * sizes.token_events()));
  const auto body = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) {
      const std::int64_t chunk = row / sizes.chunk;
      const std::int64_t p = chunk / sizes.chunks();
      const std::int64_t n = chunk % sizes.chunks();
      const std::int64_t t = row % sizes.chunk;
      const auto recalled = recalls.data() + row * sizes.chunk;
      const auto read_of = readings.data() + row * sizes.chunk;
      std::fill_n(recalled, sizes.chunk, X{0});
      std::fill_n(read_of, sizes.chunk, X{0});
      if (t >= sizes.tokens_in(n)) continue;
      const std::int64_t token = p * sizes.tokens + n * sizes.chunk;
      const chunk_of_pairs<X> one{order.data() + chunk * events,
                                  place.data() + chunk * events,
                                  run_of.data() + chunk * events,
                                  runs.data() + chunk * (events + 1),
                                  level.data() + chunk * events,
                                  k_val.data() + token * sizes.writes,
                                  static_cast<std::int32_t>(sizes.token_events()),
                                  static_cast<std::int32_t>(sizes.writes)};
      const auto now = static_cast<std::int32_t>(t);
      const std::int32_t event = now * one.token_events;
      const auto ks = k_val.data() + (token + t) * sizes.writes;
      const auto cs = q_val.data() + (token + t) * sizes.reads;
      for (std::int32_t w = 0; w < one.writes; ++w) {
        one.add_terms(event + w, ks[w], now, recalled);
      }
      const std::int32_t end = REPRISE_MUTANT(sdm_reads_miss_their_own_token) ? now : now + 1;
      for (std::int32_t r = 0; r < sizes.reads; ++r) {
        one.add_terms(event + one.writes + r, cs[r], end, read_of);
      }
    }
  };
  call.parallel_for(sizes.streams * sizes.chunks() * sizes.chunk, grain, body);
}

template <class X>
void invert_cpu(cpu_call& call, read<X> recalls, read<X> beta, write<X> inverse, sdm_inverse which,
                sdm_sizes sizes) {
  check_invert(recalls, beta, inverse, sizes);
  const std::int64_t side = sizes.chunk;
  const bool columns =
      (which == sdm_inverse::scaled_columns) != REPRISE_MUTANT(sdm_inverse_scales_the_other_side);
  const std::int64_t grain = std::max<std::int64_t>(1, 65536 / (side * side * side));
  const auto body = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t chunk = first; chunk < last; ++chunk) {
      const std::int64_t p = chunk / sizes.chunks();
      const std::int64_t n = chunk % sizes.chunks();
      const std::int64_t tokens = sizes.tokens_in(n);
      const auto b = beta.data() + (p * sizes.tokens + n * side);
      const auto whole = inverse.data() + chunk * side * side;
      for (std::int64_t t = 0; t < side; ++t) {
        const auto a = recalls.data() + (chunk * side + t) * side;
        const auto to = whole + t * side;
        std::fill_n(to, side, X{0});
        // All columns of the row side by side: each has its own terms in increasing s.
        for (std::int64_t s = 0; s < t && t < tokens; ++s) {
          const X m = a[s] * (columns ? b[s] : b[t]);
          const auto from = whole + s * side;
          for (std::int64_t j = 0; j <= s; ++j) to[j] += m * from[j];
        }
        for (std::int64_t j = 0; j < t && t < tokens; ++j) to[j] = -to[j];
        to[t] = X{1};
      }
    }
  };
  call.parallel_for(sizes.streams * sizes.chunks(), grain, body);
}

template void check_pairs(read<std::int32_t>, read<std::int32_t>, read<std::int32_t>,
                          read<std::int32_t>, read<float>, read<float>, read<double>, write<float>,
                          write<float>, const sdm_sizes&);
template void check_invert(read<float>, read<float>, write<float>, const sdm_sizes&);

}  // namespace sdm

void add_sdm_pairs(kernel_registry& registry) {
  registry.add(sdm_pairs<float>,
               {{device_kind::cpu, "generic", sdm::pairs_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::pairs_cuda<float>)}});
  registry.add(sdm_pairs<double>, {{device_kind::cpu, "generic", sdm::pairs_cpu<double>}});
  registry.add(sdm_invert<float>,
               {{device_kind::cpu, "generic", sdm::invert_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::invert_cuda<float>)}});
  registry.add(sdm_invert<double>, {{device_kind::cpu, "generic", sdm::invert_cpu<double>}});
}

}  // namespace reprise::REPRISE_BODIES
