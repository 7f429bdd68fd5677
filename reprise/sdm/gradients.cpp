#include "reprise/sdm/gradients.hpp"

#include <algorithm>
#include <cstring>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/sdm/gradient_sizes.hpp"
#include "reprise/sdm/number.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

constexpr std::int64_t tile = 64;  // rows and columns of a square of products
constexpr std::int64_t part = 64;  // columns of the memory that are added up first

template <class X>
struct products {
  pointer_to<const X> dy, m, errors, beta;
  pointer_to<X> of_readings, of_errors;
  sdm_sizes sizes;

  std::int64_t across() const { return (sizes.chunk + tile - 1) / tile; }
  std::int64_t count() const { return sizes.streams * sizes.chunks() * across() * across(); }

  struct square {
    std::int64_t first_token;  // of the chunk, among those of all streams
    std::int64_t row, column, rows, columns;
  };

  // One square of both products. Those above the diagonal are zeros.
  void operator()(std::int64_t at) const {
    const std::int64_t chunk = at / (across() * across());
    const std::int64_t p = chunk / sizes.chunks();
    const std::int64_t n = chunk % sizes.chunks();
    const std::int64_t row = at / across() % across() * tile;
    const std::int64_t column = at % across() * tile;
    const std::int64_t tokens = sizes.tokens_in(n);
    X readings[tile * tile];
    X recalls[tile * tile];
    if (column <= row) {
      const square of{p * sizes.tokens + n * sizes.chunk, row, column,
                      std::clamp<std::int64_t>(tokens - row, 0, tile),
                      std::clamp<std::int64_t>(tokens - column, 0, tile)};
      add_parts(of, readings, recalls);
    }
    const std::int64_t columns = std::min(tile, sizes.chunk - column);
    for (std::int64_t r = 0; r < std::min(tile, sizes.chunk - row); ++r) {
      const std::int64_t t = row + r;
      const std::int64_t seen = t < tokens ? std::clamp<std::int64_t>(t - column, 0, columns) : 0;
      const std::int64_t own = t < tokens && t >= column && t - column < columns ? 1 : 0;
      const std::int64_t recalled = seen + (REPRISE_MUTANT(sdm_errors_recall_themselves) ? own : 0);
      std::fill(readings + r * tile + seen + own, readings + r * tile + columns, X{});
      std::fill(recalls + r * tile + recalled, recalls + r * tile + columns, X{});
      const auto to = (chunk * sizes.chunk + t) * sizes.chunk + column;
      write_elements(readings + r * tile, static_cast<std::size_t>(columns), of_readings + to);
      write_elements(recalls + r * tile, static_cast<std::size_t>(columns), of_errors + to);
    }
  }

  void add_parts(const square& of, X* readings, X* recalls) const {
    alignas(64) X deltas[part * tile] = {};  // column l of the memory, delta s: [l * tile + s]
    std::fill(readings, readings + of.rows * tile, X{});
    std::fill(recalls, recalls + of.rows * tile, X{});
    for (std::int64_t begin = 0; begin < sizes.width; begin += part) {
      const std::int64_t terms = std::min(part, sizes.width - begin);
      X line[part];
      for (std::int64_t s = 0; s < of.columns; ++s) {
        const std::int64_t token = of.first_token + of.column + s;
        const X strength = beta[token];
        read_elements(errors + token * sizes.width + begin, static_cast<std::size_t>(terms), line);
        for (std::int64_t l = 0; l < terms; ++l) deltas[l * tile + s] = strength * line[l];
      }
      for (std::int64_t r = 0; r < of.rows; ++r) {
        const std::int64_t token = of.first_token + of.row + r;
        const X strength = beta[token];
        X above[part];
        X dv[part];
        read_elements(dy + token * sizes.width + begin, static_cast<std::size_t>(terms), above);
        read_elements(m + token * sizes.width + begin, static_cast<std::size_t>(terms), dv);
        for (std::int64_t l = 0; l < terms; ++l) dv[l] = strength * dv[l];
        const std::int64_t wanted = std::min(of.columns, of.row + r - of.column + 1);
        for (std::int64_t s = 0; s < wanted; s += side_by_side) {
          add_part(above, dv, deltas + s, terms, readings + r * tile + s, recalls + r * tile + s);
        }
      }
    }
  }

  // Sums of neighbouring outputs, which registers hold: in vectors, since GCC 12 makes none of
  // arrays here.
  typedef X vector __attribute__((vector_size(16)));
  static constexpr int vectors = 4;
  static constexpr int lanes = static_cast<int>(sizeof(vector) / sizeof(X));
  static constexpr int side_by_side = vectors * lanes;
  static_assert(tile % side_by_side == 0);

  static void add_part(const X* above, const X* dv, const X* deltas, std::int64_t terms,
                       X* readings, X* recalls) {
    vector of_above[vectors] = {};
    vector of_dv[vectors] = {};
    for (std::int64_t l = 0; l < terms; ++l) {
      for (int i = 0; i < vectors; ++i) {
        vector delta;
        std::memcpy(&delta, deltas + l * tile + i * lanes, sizeof delta);
        of_above[i] += above[l] * delta;
        of_dv[i] += dv[l] * delta;
      }
    }
    add_to(readings, of_above);
    add_to(recalls, of_dv);
  }

  static void add_to(X* totals, const vector (&sums)[vectors]) {
    for (int i = 0; i < vectors; ++i) {
      vector total;
      std::memcpy(&total, totals + i * lanes, sizeof total);
      total += sums[i];
      std::memcpy(totals + i * lanes, &total, sizeof total);
    }
  }
};

// The gradients of one chunk's events. before(x, p) is kept where the gradient of x will be: in dq
// of a read, in dk of a write.
template <class X>
struct event_grads {
  pointer_to<const std::int32_t> order, place, runs;
  pointer_to<const X> k_val, q_val;
  pointer_to<const double> level;
  pointer_to<const X> of_state, of_cotangent, of_both, of_readings, of_errors;
  pointer_to<X> dk, dq, dg_by_write;
  sdm_sizes sizes;

  struct chunk_place {
    std::int64_t chunk;        // among those of all streams
    std::int64_t first_event;  // and its events
    std::int64_t first_token;  // and tokens
    std::int64_t tokens;
  };

  chunk_place chunk_at(std::int64_t chunk) const {
    const std::int64_t n = chunk % sizes.chunks();
    return {chunk, chunk * sizes.events(), chunk / sizes.chunks() * sizes.tokens + n * sizes.chunk,
            sizes.tokens_in(n)};
  }

  // Event i of a chunk, if it is left out, and run i.
  void operator()(std::int64_t at) const {
    const chunk_place in = chunk_at(at / sizes.events());
    const std::int64_t i = at % sizes.events();
    const event_place event = place_of_event(sizes, in.first_token, static_cast<std::int32_t>(i));
    if (event.token < in.tokens && place[at] == -1) {
      before(event) = X{};
      if (event.writes) dg_by_write[event.at] = X{};
    }
    const auto run = runs + (in.chunk * (sizes.events() + 1) + i);
    if (run[0] < run[1]) of_run(in, i, order + in.first_event + run[0], run[1] - run[0]);
  }

  decltype(auto) before(const event_place& x) const { return (x.writes ? dk : dq)[x.at]; }

  X whole(pointer_to<const X> parts, std::int64_t at) const {
    X sum{};
    for (std::int64_t i = 0; i < parts_of(sizes.width); ++i) {
      sum += parts[at * parts_of(sizes.width) + i];
    }
    return sum;
  }

  X product(const chunk_place& in, const event_place& x, const event_place& p) const {
    return (x.writes ? of_errors
                     : of_readings)[(in.chunk * sizes.chunk + x.token) * sizes.chunk + p.token];
  }

  void of_run(const chunk_place& in, std::int64_t run, pointer_to<const std::int32_t> events,
              std::int64_t count) const {
    const auto levels = level + in.first_event;
    const double level_of_end = levels[events[count - 1]];
    for (std::int64_t i = 0; i < count; ++i) {
      const X e = decay_between<X>(levels[events[i]], 0.0);
      before(place_of_event(sizes, in.first_token, events[i])) =
          X{} + e * whole(of_state, in.first_event + events[i]);
    }
    X before_end = X{} + decay_between<X>(level_of_end, 0.0) * whole(of_both, in.first_event + run);

    for (std::int64_t i = 0; i < count; ++i) {
      const event_place p = place_of_event(sizes, in.first_token, events[i]);
      if (!p.writes) continue;
      const double level_of_p = levels[events[i]];
      const X k = k_val[p.at];
      const X own = before(p);
      X after{};
      X decay{};
      if (!REPRISE_MUTANT(sdm_decay_forgets_what_its_write_recalls)) decay += -k * own;
      for (std::int64_t j = i + 1; j < count; ++j) {
        const event_place x = place_of_event(sizes, in.first_token, events[j]);
        const X c = x.writes ? -k_val[x.at] : q_val[x.at];
        const X e = decay_between<X>(levels[events[j]], level_of_p);
        const X both = product(in, x, p);
        const X so_far = before(x);
        decay += c * so_far;
        after += (c * e) * both;
        before(x) = so_far + (k * e) * both;
      }
      const X e = decay_between<X>(level_of_end, level_of_p);
      const X both = whole(of_cotangent, in.first_event + events[i]);
      decay += before_end;
      after += e * both;
      before_end += (k * e) * both;
      before(p) = after - own;
      dg_by_write[p.at] = decay;
    }
  }
};

// <a, b> of two rows, as number.hpp says.
template <class X>
X dot(pointer_to<const X> a, pointer_to<const X> b, std::int64_t width) {
  constexpr int lanes = part_columns / lane_columns;
  X total{};
  for (std::int64_t begin = 0; begin < width; begin += part_columns) {
    const auto columns = static_cast<std::size_t>(std::min(part_columns, width - begin));
    X left[part_columns] = {};
    X right[part_columns] = {};
    read_elements(a + begin, columns, left);
    read_elements(b + begin, columns, right);
    X sums[lanes] = {};
    for (int i = 0; i < lane_columns; ++i) {
      for (int l = 0; l < lanes; ++l) {
        sums[l] += left[l * lane_columns + i] * right[l * lane_columns + i];
      }
    }
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) sums[l] += sums[l + half];
    }
    total += sums[0];
  }
  return total;
}

}  // namespace

template <class X>
void products_cpu(cpu_call& call, read<X> dy, read<X> m, read<X> errors, read<X> beta,
                  write<X> of_readings, write<X> of_errors, sdm_sizes sizes) {
  need_products(sizes, dy, m, errors, beta, of_readings, of_errors);
  const products<X> squares{dy.data(),          m.data(),         errors.data(), beta.data(),
                            of_readings.data(), of_errors.data(), sizes};
  const std::int64_t terms =
      std::min(sizes.chunk, tile) * std::min(sizes.chunk, tile) * sizes.width;
  call.parallel_for(squares.count(), std::max<std::int64_t>(1, (1 << 17) / terms),
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) squares(at);
                    });
}

template <class X>
void event_grads_cpu(cpu_call& call, read<std::int32_t> order, read<std::int32_t> place,
                     read<std::int32_t> runs, read<X> k_val, read<X> q_val, read<double> level,
                     read<X> of_state, read<X> of_cotangent, read<X> of_both, read<X> of_readings,
                     read<X> of_errors, write<X> dk, write<X> dq, write<X> dg_by_write,
                     sdm_sizes sizes) {
  need_event_grads(
      sizes, {order.size(), place.size(), runs.size(), k_val.size(), q_val.size(), level.size(),
              of_state.size(), of_cotangent.size(), of_both.size(), of_readings.size(),
              of_errors.size(), dk.size(), dq.size(), dg_by_write.size()});
  const event_grads<X> events{order.data(),       place.data(),        runs.data(),
                              k_val.data(),       q_val.data(),        level.data(),
                              of_state.data(),    of_cotangent.data(), of_both.data(),
                              of_readings.data(), of_errors.data(),    dk.data(),
                              dq.data(),          dg_by_write.data(),  sizes};
  call.parallel_for(sizes.streams * sizes.chunks() * sizes.events(), 256,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) events(at);
                    });
}

template <class X>
void token_grads_cpu(cpu_call& call, read<X> m, read<X> errors, read<X> beta, read<X> dg_by_write,
                     write<X> dv, write<X> dbeta, write<X> dg, sdm_sizes sizes) {
  need_token_grads(sizes, m, errors, beta, dg_by_write, dv, dbeta, dg);
  const std::int64_t width = sizes.width;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (width + sizes.writes));
  call.parallel_for(
      sizes.streams * sizes.tokens, grain, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t token = first; token < last; ++token) {
          const auto of_delta = m.data() + token * width;
          const auto to = dv.data() + token * width;
          const X strength = beta.data()[token];
          for (std::int64_t j = 0; j < width; ++j) to[j] = strength * of_delta[j];
          dbeta.data()[token] = dot<X>(of_delta, errors.data() + token * width, width);
          const auto decays = dg_by_write.data() + token * sizes.writes;
          if (sizes.decays == 1) {
            X sum{};
            for (std::int64_t w = 0; w < sizes.writes; ++w) sum += decays[w];
            dg.data()[token] = sum;
          } else {
            copy_elements(decays, static_cast<std::size_t>(sizes.writes),
                          dg.data() + token * sizes.writes);
          }
        }
      });
}

}  // namespace sdm

void add_sdm_gradients(kernel_registry& registry) {
  registry.add(sdm_products<float>,
               {{device_kind::cpu, "generic", sdm::products_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::products_cuda<float>)}});
  registry.add(sdm_event_grads<float>,
               {{device_kind::cpu, "generic", sdm::event_grads_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::event_grads_cuda<float>)}});
  registry.add(sdm_token_grads<float>,
               {{device_kind::cpu, "generic", sdm::token_grads_cpu<float>},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::token_grads_cuda<float>)}});
  registry.add(sdm_products<double>, {{device_kind::cpu, "generic", sdm::products_cpu<double>}});
  registry.add(sdm_event_grads<double>,
               {{device_kind::cpu, "generic", sdm::event_grads_cpu<double>}});
  registry.add(sdm_token_grads<double>,
               {{device_kind::cpu, "generic", sdm::token_grads_cpu<double>}});
}

}  // namespace reprise::REPRISE_BODIES
