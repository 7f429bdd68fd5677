// Runs the kernels of chunks on a bench, forward over all chunks and back: what the tests of both
// halves share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "reprise/sdm/backward.hpp"
#include "reprise/sdm/forward.hpp"
#include "tests/ops/bench.hpp"
#include "tests/sdm/chunk_case.hpp"

namespace reprise::test::sdm_chunk {

// In the type T, which holds each exactly.
template <class T>
std::vector<T> as(const doubles& from) {
  std::vector<T> to;
  for (const double one : from) {
    if constexpr (std::is_same_v<T, double>) {
      to.push_back(one);
    } else {
      to.push_back(narrow<T>(static_cast<float>(one)));
    }
  }
  return to;
}

template <class T>
double number(T x) {
  if constexpr (std::is_same_v<T, double>) {
    return x;
  } else {
    return static_cast<double>(widen(x));
  }
}

// Largest difference, with its place; a NaN is infinitely far away.
template <class T>
double furthest(const std::vector<T>& got, const doubles& want) {
  if (got.size() != want.size()) return INFINITY;
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(number(got[i]) - want[i]);
    most = off <= most ? most : std::isnan(off) ? INFINITY : off;
  }
  return most;
}

template <class B, class X = sdm::arithmetic<B>>
struct forward_results {
  std::vector<X> errors, readings;
  std::vector<B> bank;
  std::vector<std::uint8_t> saved;
};

template <class B>
std::size_t saved_size(const sdm_sizes& s, saved_rows format) {
  return at(s.streams * s.chunks() * s.chunk * s.writes *
            row_bytes(format, s.width, static_cast<std::int64_t>(sizeof(B))));
}

struct chunk_range {
  std::int64_t first = 0;
  std::int64_t last = -1;  // -1: all
};

template <class B>
forward_results<B> run_forward(op_bench& bench, const chunk_case& c,
                               saved_rows format = saved_rows::as_stored,
                               place where = place::aligned, bool saves = true,
                               chunk_range range = {}) {
  using X = sdm::arithmetic<B>;
  const sdm_sizes& s = c.sizes;
  const chunk_tables<X> tables{c};
  const auto bank = bench.put(as<B>(c.bank), where);
  const auto k_idx = bench.put(c.k_idx);
  const auto q_idx = bench.put(c.q_idx);
  const auto v = bench.put(as<X>(c.v), where);
  const auto beta = bench.put(as<X>(c.beta), where);
  const auto order = bench.put(tables.order);
  const auto runs = bench.put(tables.runs);
  const auto rows = bench.put(tables.rows);
  const auto written = bench.put(tables.written);
  const auto head = bench.put(tables.head, where);
  const auto tail = bench.put(tables.tail, where);
  const auto keep = bench.put(tables.keep, where);
  const auto inverse = bench.put(tables.errors_inverse, where);
  const auto pairs = bench.put(tables.pairs, where);
  const auto errors = bench.template room<X>(c.v.size(), where);
  const auto readings = bench.template room<X>(c.v.size(), where);
  const auto saved = bench.template room<std::uint8_t>(saves ? saved_size<B>(s, format) : 0, where);
  const std::int64_t last = range.last < 0 ? s.chunks() : range.last;
  for (std::int64_t n = range.first; n < last; ++n) {
    launch(bench.on(), sdm_recall<B>, read<B>{bank.span()}, read<std::int32_t>{k_idx.span()},
           read<std::int32_t>{q_idx.span()}, read<X>{head.span()}, read<X>{v.span()},
           write<X>{errors.span()}, write<X>{readings.span()}, s, n);
    launch(bench.on(), sdm_solve<X>, read<X>{inverse.span()}, read<X>{pairs.span()},
           read<X>{beta.span()}, inout<X>{errors.span()}, inout<X>{readings.span()}, s, n);
    launch(bench.on(), sdm_write<B>, read<std::int32_t>{order.span()},
           read<std::int32_t>{runs.span()}, read<std::int32_t>{rows.span()},
           read<std::int32_t>{written.span()}, read<X>{tail.span()}, read<X>{keep.span()},
           read<X>{beta.span()}, read<X>{errors.span()}, inout<B>{bank.span()},
           write<std::uint8_t>{saved.span()}, format, s, n);
  }
  return {bench.take(errors), bench.take(readings), bench.take(bank), bench.take(saved)};
}

template <class B, class G, class X = sdm::arithmetic<B>>
struct backward_results {
  std::vector<X> m;
  std::vector<B> bank;
  std::vector<G> cotangent;
  std::vector<X> of_state, of_cotangent, of_both;
};

template <class B, class G>
backward_results<B, G> run_backward(op_bench& bench, const chunk_case& c,
                                    const forward_results<B>& from,
                                    saved_rows format = saved_rows::as_stored,
                                    place where = place::aligned, chunk_range range = {}) {
  using X = sdm::arithmetic<B>;
  const sdm_sizes& s = c.sizes;
  const chunk_tables<X> tables{c};
  const auto bank = bench.put(from.bank, where);
  const auto cotangent = bench.put(as<G>(c.d_final), where);
  const auto k_idx = bench.put(c.k_idx);
  const auto dy = bench.put(as<X>(c.dy), where);
  const auto beta = bench.put(as<X>(c.beta), where);
  const auto order = bench.put(tables.order);
  const auto runs = bench.put(tables.runs);
  const auto rows = bench.put(tables.rows);
  const auto written = bench.put(tables.written);
  const auto head = bench.put(tables.head, where);
  const auto tail = bench.put(tables.tail, where);
  const auto keep = bench.put(tables.keep, where);
  const auto inverse = bench.put(tables.deltas_inverse, where);
  const auto pairs = bench.put(tables.pairs, where);
  const auto errors = bench.put(from.errors, where);
  const auto saved = bench.put(from.saved, where);
  const auto m = bench.template room<X>(c.v.size(), where);
  const std::size_t products = tables.order.size() * at(sdm::parts_of(s.width));
  const auto of_state = bench.template room<X>(products, where);
  const auto of_cotangent = bench.template room<X>(products, where);
  const auto of_both = bench.template room<X>(products, where);
  const std::int64_t last = range.last < 0 ? s.chunks() : range.last;
  for (std::int64_t n = last - 1; n >= range.first; --n) {
    launch(bench.on(), sdm_gather<G>, read<G>{cotangent.span()}, read<std::int32_t>{k_idx.span()},
           read<X>{tail.span()}, write<X>{m.span()}, s, n);
    launch(bench.on(), sdm_solve_back<X>, read<X>{inverse.span()}, read<X>{pairs.span()},
           read<X>{dy.span()}, inout<X>{m.span()}, s, n);
    launch(bench.on(), sdm_rewind<B, G>, read<std::int32_t>{order.span()},
           read<std::int32_t>{runs.span()}, read<std::int32_t>{rows.span()},
           read<std::int32_t>{written.span()}, read<X>{head.span()}, read<X>{keep.span()},
           read<X>{beta.span()}, read<X>{dy.span()}, read<X>{m.span()}, read<X>{errors.span()},
           read<std::uint8_t>{saved.span()}, inout<B>{bank.span()}, inout<G>{cotangent.span()},
           write<X>{of_state.span()}, write<X>{of_cotangent.span()}, write<X>{of_both.span()},
           format, s, n);
  }
  return {bench.take(m),        bench.take(bank),         bench.take(cotangent),
          bench.take(of_state), bench.take(of_cotangent), bench.take(of_both)};
}

// Widths that fill no vector, one part, and several; ragged last chunks, chunks of one token, one
// that is longer than the stream; more rows than a block of CUDA has, and a side that no 16-byte
// access fits.
inline std::vector<sdm_sizes> chunk_shapes() {
  return {
      {.streams = 1,
       .slots = 8,
       .width = 5,
       .tokens = 11,
       .writes = 2,
       .reads = 3,
       .decays = 1,
       .chunk = 4},
      {.streams = 3,
       .slots = 6,
       .width = 1,
       .tokens = 5,
       .writes = 3,
       .reads = 2,
       .decays = 3,
       .chunk = 1},
      {.streams = 2,
       .slots = 20,
       .width = 8,
       .tokens = 40,
       .writes = 4,
       .reads = 5,
       .decays = 4,
       .chunk = 16},
      {.streams = 1,
       .slots = 9,
       .width = 256,
       .tokens = 30,
       .writes = 3,
       .reads = 3,
       .decays = 1,
       .chunk = 64},
      {.streams = 2,
       .slots = 50,
       .width = 300,
       .tokens = 33,
       .writes = 5,
       .reads = 7,
       .decays = 5,
       .chunk = 32},
      {.streams = 1,
       .slots = 70,
       .width = 520,
       .tokens = 9,
       .writes = 40,
       .reads = 35,
       .decays = 1,
       .chunk = 7},
      {.streams = 1,
       .slots = 5,
       .width = 12,
       .tokens = 410,
       .writes = 2,
       .reads = 1,
       .decays = 1,
       .chunk = 303},
      {.streams = 1,
       .slots = 300,
       .width = 64,
       .tokens = 270,
       .writes = 2,
       .reads = 3,
       .decays = 2,
       .chunk = 260},
  };
}

inline std::string shape_text(const sdm_sizes& s) {
  return std::to_string(s.tokens) + " tokens in chunks of " + std::to_string(s.chunk) + ", " +
         std::to_string(s.slots) + " x " + std::to_string(s.width);
}

}  // namespace reprise::test::sdm_chunk
