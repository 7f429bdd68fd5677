#include "reprise/sdm/weights.hpp"

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
struct chunk_to_weigh {
  pointer_to<const std::int32_t> order, runs;
  pointer_to<const X> k_val, g, q_val;  // of the chunk's first token
  pointer_to<double> level;
  pointer_to<X> head, tail, keep;
  std::int32_t token_events, writes, reads, decays;

  // Positions [begin, end) of `order`. Returns what becomes of the row.
  X weigh_run(std::int32_t begin, std::int32_t end) const {
    double sum = 0.0;
    for (std::int32_t i = begin; i < end; ++i) {
      const std::int32_t event = order[i];
      const std::int32_t t = event / token_events;
      const std::int32_t w = event % token_events;
      const bool is_write = w < writes;
      if (is_write) {
        sum += summed_decay(static_cast<double>(decays == 1 ? g[t] : g[t * writes + w]));
        if (REPRISE_MUTANT(sdm_decays_are_summed_in_f32)) sum = static_cast<float>(sum);
      }
      const X weight = is_write ? k_val[t * writes + w] : q_val[t * reads + (w - writes)];
      level[event] = sum;
      head[event] = weight * decay_between<X>(sum, 0.0);
    }
    for (std::int32_t i = begin; i < end; ++i) {
      const std::int32_t event = order[i];
      const std::int32_t t = event / token_events;
      const std::int32_t w = event % token_events;
      if (w >= writes) continue;
      const double here = level[event];
      tail[event] = k_val[t * writes + w] * decay_between<X>(sum, here);
    }
    return decay_between<X>(sum, 0.0);
  }

  void weigh(std::int32_t events) const {
    std::fill_n(level, events, 0.0);
    std::fill_n(head, events, X{0});
    std::fill_n(tail, events, X{0});
    for (std::int32_t run = 0; run < events; ++run) {
      const std::int32_t begin = runs[run];
      const std::int32_t end = runs[run + 1];
      keep[run] = begin == end ? X{0} : weigh_run(begin, end);
    }
  }
};

}  // namespace

template <class X>
void check_weights(read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val, read<X> g,
                   read<X> q_val, write<double> level, write<X> head, write<X> tail, write<X> keep,
                   const sdm_sizes& sizes) {
  extents{"sdm_weights", sizes}
      .by_chunk("order", order.size(), sizes.events())
      .by_chunk("runs", runs.size(), sizes.events() + 1)
      .by_token("k_val", k_val.size(), sizes.writes)
      .by_token("g", g.size(), sizes.decays)
      .by_token("q_val", q_val.size(), sizes.reads)
      .by_chunk("level", level.size(), sizes.events())
      .by_chunk("head", head.size(), sizes.events())
      .by_chunk("tail", tail.size(), sizes.events())
      .by_chunk("keep", keep.size(), sizes.events());
}

template <class X>
void weights_cpu(cpu_call& call, read<std::int32_t> order, read<std::int32_t> runs, read<X> k_val,
                 read<X> g, read<X> q_val, write<double> level, write<X> head, write<X> tail,
                 write<X> keep, sdm_sizes sizes) {
  check_weights(order, runs, k_val, g, q_val, level, head, tail, keep, sizes);
  const std::int64_t events = sizes.events();
  const std::int64_t grain = std::max<std::int64_t>(1, 4096 / events);
  const auto body = [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t chunk = first; chunk < last; ++chunk) {
      const std::int64_t p = chunk / sizes.chunks();
      const std::int64_t n = chunk % sizes.chunks();
      const std::int64_t token = p * sizes.tokens + n * sizes.chunk;
      const chunk_to_weigh<X> one{order.data() + chunk * events,
                                  runs.data() + chunk * (events + 1),
                                  k_val.data() + token * sizes.writes,
                                  g.data() + token * sizes.decays,
                                  q_val.data() + token * sizes.reads,
                                  level.data() + chunk * events,
                                  head.data() + chunk * events,
                                  tail.data() + chunk * events,
                                  keep.data() + chunk * events,
                                  static_cast<std::int32_t>(sizes.token_events()),
                                  static_cast<std::int32_t>(sizes.writes),
                                  static_cast<std::int32_t>(sizes.reads),
                                  static_cast<std::int32_t>(sizes.decays)};
      one.weigh(static_cast<std::int32_t>(events));
    }
  };
  call.parallel_for(sizes.streams * sizes.chunks(), grain, body);
}

template void check_weights(read<std::int32_t>, read<std::int32_t>, read<float>, read<float>,
                            read<float>, write<double>, write<float>, write<float>, write<float>,
                            const sdm_sizes&);

}  // namespace sdm

void add_sdm_weights(kernel_registry& registry) {
  registry.add(sdm_weights<float>,
               {{device_kind::cpu, "generic", sdm::weights_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::weights_cuda<float>)}});
  registry.add(sdm_weights<double>, {{device_kind::cpu, "generic", sdm::weights_cpu<double>}});
}

}  // namespace reprise::REPRISE_BODIES
