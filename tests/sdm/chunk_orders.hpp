// The kernels of a chunk by plain loops over one number after the other, in the type and the order
// that their headers give: what their bits are held to. Nothing is done in place, and nothing is
// shared with the bodies but the codes of saved rows, which saved_rows_test.cpp looks at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/sdm/chunk_case.hpp"
#include "tests/sdm/chunk_run.hpp"

namespace reprise::test::sdm_chunk {

template <class B, class X = sdm::arithmetic<B>>
struct in_order {
  chunk_case c;
  sdm_sizes s;
  chunk_tables<X> tables;
  std::vector<X> k_val, v, beta, q_val, dy;

  explicit in_order(const chunk_case& of)
      : c{of}, s{of.sizes}, tables{of}, v{as<X>(of.v)}, beta{as<X>(of.beta)}, dy{as<X>(of.dy)} {}

  static X wide(B x) { return sdm::widened<X>(x); }

  std::size_t token(std::int64_t p, std::int64_t n, std::int64_t t) const {
    return at(p * s.tokens + n * s.chunk + t);
  }
  std::size_t first_event(std::int64_t p, std::int64_t n) const {
    return at((p * s.chunks() + n) * s.events());
  }
  X entry(const std::vector<X>& matrix, std::int64_t p, std::int64_t n, std::int64_t t,
          std::int64_t i) const {
    return matrix[at(((p * s.chunks() + n) * s.chunk + t) * s.chunk + i)];
  }
  std::size_t cell(std::size_t row, std::size_t j) const { return row * at(s.width) + j; }

  template <class R>
  X weighed_rows(const std::vector<R>& bank, const std::vector<X>& weights, bool reads,
                 std::int64_t p, std::int64_t n, std::int64_t t, std::size_t j) const {
    const std::int64_t count = reads ? s.reads : s.writes;
    X sum{0};
    for (std::int64_t i = 0; i < count; ++i) {
      const std::size_t index = token(p, n, t) * at(count) + at(i);
      const std::int32_t row = (reads ? c.q_idx : c.k_idx)[index];
      if (!c.is_row_of(p, row)) continue;
      const std::int64_t event = t * s.token_events() + (reads ? s.writes : 0) + i;
      sum += weights[first_event(p, n) + at(event)] * sdm::widened<X>(bank[cell(at(row), j)]);
    }
    return sum;
  }

  // each(p, n, t, j) for every token and column of chunk n.
  template <class Each>
  void each_column(std::int64_t n, const Each& each) const {
    for (std::int64_t p = 0; p < s.streams; ++p) {
      for (std::int64_t t = 0; t < s.tokens_in(n); ++t) {
        for (std::size_t j = 0; j < at(s.width); ++j) each(p, t, j);
      }
    }
  }
  // each(p, first event, run) for every run of chunk n.
  template <class Each>
  void each_run(std::int64_t n, const Each& each) const {
    for (std::int64_t p = 0; p < s.streams; ++p) {
      const std::size_t first = first_event(p, n);
      for (std::size_t r = 0; r < at(s.events()); ++r) {
        if (tables.rows[first + r] >= 0) each(p, first, r);
      }
    }
  }
  // each(event, its token, whether it writes) of a run, in the order of time.
  template <class Each>
  void each_event(std::int64_t p, std::int64_t n, std::size_t r, const Each& each) const {
    const std::size_t first = first_event(p, n);
    const std::size_t bounds = first + at(p * s.chunks() + n) + r;
    for (std::int32_t i = tables.runs[bounds]; i < tables.runs[bounds + 1]; ++i) {
      const std::int64_t event = tables.order[first + at(i)];
      each(first + at(event), token(p, n, event / s.token_events()),
           event % s.token_events() < s.writes);
    }
  }

  void forward_chunk(std::int64_t n, forward_results<B>& of) const {
    auto recalled = of.errors;
    each_column(n, [&](std::int64_t p, std::int64_t t, std::size_t j) {
      const std::size_t here = cell(token(p, n, t), j);
      recalled[here] = v[here] - weighed_rows(of.bank, tables.head, false, p, n, t, j);
      of.readings[here] = weighed_rows(of.bank, tables.head, true, p, n, t, j);
    });
    each_column(n, [&](std::int64_t p, std::int64_t t, std::size_t j) {
      X sum{0};
      for (std::int64_t i = 0; i <= t; ++i) {
        sum += entry(tables.errors_inverse, p, n, t, i) * recalled[cell(token(p, n, i), j)];
      }
      of.errors[cell(token(p, n, t), j)] = sum;
    });
    each_column(n, [&](std::int64_t p, std::int64_t t, std::size_t j) {
      X sum{0};
      for (std::int64_t i = 0; i <= t; ++i) {
        const std::size_t other = token(p, n, i);
        const X u = beta[other] * of.errors[cell(other, j)];
        sum += entry(tables.pairs, p, n, t, i) * u;
      }
      of.readings[cell(token(p, n, t), j)] += sum;
    });
    each_run(n, [&](std::int64_t p, std::size_t first, std::size_t r) {
      if (tables.written[first + r] < 0) return;
      for (std::size_t j = 0; j < at(s.width); ++j) {
        B& at_row = of.bank[cell(at(tables.rows[first + r]), j)];
        X sum = tables.keep[first + r] * wide(at_row);
        each_event(p, n, r, [&](std::size_t event, std::size_t when, bool writes) {
          if (!writes) return;
          const X u = beta[when] * of.errors[cell(when, j)];
          sum += tables.tail[event] * u;
        });
        at_row = sdm::stored<B>(sum);
      }
    });
  }

  forward_results<B> forward() const {
    forward_results<B> of{std::vector<X>(v.size(), poison<X>()),
                          std::vector<X>(v.size(), poison<X>()),
                          as<B>(c.bank),
                          {}};
    for (std::int64_t n = 0; n < s.chunks(); ++n) forward_chunk(n, of);
    return of;
  }

  // Part `part` of a dot product: 32 lanes of eight neighbours, then one tree.
  X part_dot(const std::vector<X>& a, const std::vector<X>& b, std::size_t part) const {
    std::vector<X> lanes(32, X{0});
    for (std::size_t j = part * 256; j < std::min(a.size(), part * 256 + 256); ++j) {
      lanes[j % 256 / 8] += a[j] * b[j];
    }
    for (std::size_t half = 16; half > 0; half /= 2) {
      for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
    }
    return lanes[0];
  }

  // `before` is what the bank holds before the chunk, row by row of its runs.
  template <class G>
  void backward_chunk(std::int64_t n, const std::vector<B>& before, const std::vector<X>& errors,
                      backward_results<B, G>& of) const {
    const auto parts = at(sdm::parts_of(s.width));
    auto x = of.m;
    each_column(n, [&](std::int64_t p, std::int64_t t, std::size_t j) {
      X sum{0};
      for (std::int64_t i = t; i < s.tokens_in(n); ++i) {
        sum += entry(tables.pairs, p, n, i, t) * dy[cell(token(p, n, i), j)];
      }
      x[cell(token(p, n, t), j)] = weighed_rows(of.cotangent, tables.tail, false, p, n, t, j) + sum;
    });
    each_column(n, [&](std::int64_t p, std::int64_t t, std::size_t j) {
      X sum{0};
      for (std::int64_t i = t; i < s.tokens_in(n); ++i) {
        sum += entry(tables.deltas_inverse, p, n, i, t) * x[cell(token(p, n, i), j)];
      }
      of.m[cell(token(p, n, t), j)] = sum;
    });
    each_run(n, [&](std::int64_t p, std::size_t first, std::size_t r) {
      const std::size_t row = at(tables.rows[first + r]);
      const std::size_t width = at(s.width);
      std::vector<X> of_bank(width);
      std::vector<X> behind(width);
      std::vector<X> sums(width);
      for (std::size_t j = 0; j < width; ++j) {
        if (tables.written[first + r] >= 0) of.bank[cell(row, j)] = before[cell(row, j)];
        of_bank[j] = wide(of.bank[cell(row, j)]);
        behind[j] = sdm::widened<X>(of.cotangent[cell(row, j)]);
        sums[j] = tables.keep[first + r] * behind[j];
      }
      for (std::size_t part = 0; part < parts; ++part) {
        of.of_both[(first + r) * parts + part] = part_dot(behind, of_bank, part);
      }
      each_event(p, n, r, [&](std::size_t event, std::size_t when, bool writes) {
        std::vector<X> value(width);
        std::vector<X> u(width, X{0});
        for (std::size_t j = 0; j < width; ++j) {
          value[j] = writes ? beta[when] * of.m[cell(when, j)] : dy[cell(when, j)];
          if (writes) u[j] = beta[when] * errors[cell(when, j)];
          const X term = tables.head[event] * value[j];
          sums[j] += writes ? -term : term;
        }
        for (std::size_t part = 0; part < parts; ++part) {
          of.of_state[event * parts + part] = part_dot(of_bank, value, part);
          of.of_cotangent[event * parts + part] = part_dot(behind, u, part);
        }
      });
      for (std::size_t j = 0; j < width; ++j) {
        of.cotangent[cell(row, j)] = sdm::stored<G>(sums[j]);
      }
    });
  }

  // From what the forward left, to the bank before each chunk.
  template <class G>
  backward_results<B, G> backward() const {
    forward_results<B> chain{std::vector<X>(v.size(), poison<X>()),
                             std::vector<X>(v.size(), poison<X>()),
                             as<B>(c.bank),
                             {}};
    std::vector<std::vector<B>> before;
    for (std::int64_t n = 0; n < s.chunks(); ++n) {
      before.push_back(chain.bank);
      forward_chunk(n, chain);
    }
    const std::vector<X> untouched(tables.order.size() * at(sdm::parts_of(s.width)), poison<X>());
    backward_results<B, G> of{std::vector<X>(v.size(), poison<X>()),
                              chain.bank,
                              as<G>(c.d_final),
                              untouched,
                              untouched,
                              untouched};
    for (std::int64_t n = s.chunks() - 1; n >= 0; --n) {
      backward_chunk<G>(n, before[at(n)], chain.errors, of);
    }
    return of;
  }
};

}  // namespace reprise::test::sdm_chunk
