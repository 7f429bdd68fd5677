// The kernels of a chunk, one after the other, forward and back, on host memory, for tests of all
// kernels (tests/ops/every_kernel.hpp says what a runner is).
#pragma once

#include <cstdint>
#include <vector>

#include "tests/sdm/chunk_calls.hpp"
#include "tests/sdm/chunk_run.hpp"

namespace reprise::test {

template <class T>
inout<T> changed(std::vector<T>& at) {
  return inout<T>{view<T>{at.data(), at.size()}};
}

// Every kernel of chunk after chunk, forward and back.
template <class B, class G, class Runner>
void run_chunks(Runner& with, const sdm_sizes& s, saved_rows format) {
  using X = sdm::arithmetic<B>;
  const sdm_chunk::chunk_case c{s, 41};
  const sdm_chunk::chunk_tables<X> tables{c};
  auto bank = sdm_chunk::as<B>(c.bank);
  auto cotangent = sdm_chunk::as<G>(c.d_final);
  const auto v = sdm_chunk::as<X>(c.v);
  const auto beta = sdm_chunk::as<X>(c.beta);
  const auto dy = sdm_chunk::as<X>(c.dy);
  std::vector<X> errors(c.v.size(), X{9});
  std::vector<X> readings(c.v.size(), X{9});
  std::vector<X> m(c.v.size(), X{9});
  std::vector<std::uint8_t> saved(sdm_chunk::saved_size<B>(s, format), 9);
  const std::size_t products = tables.order.size() * sdm_chunk::at(sdm::parts_of(s.width));
  std::vector<X> of_state(products, X{9});
  std::vector<X> of_cotangent(products, X{9});
  std::vector<X> of_both(products, X{9});
  for (std::int64_t n = 0; n < s.chunks(); ++n) {
    with.run(sdm_recall<B>, given(bank), given(c.k_idx), given(c.q_idx), given(tables.head),
             given(v), made(errors), made(readings), s, n);
    with.run(sdm_solve<X>, given(tables.errors_inverse), given(tables.pairs), given(beta),
             changed(errors), changed(readings), s, n);
    with.run(sdm_write<B>, given(tables.order), given(tables.runs), given(tables.rows),
             given(tables.written), given(tables.tail), given(tables.keep), given(beta),
             given(errors), changed(bank), made(saved), format, s, n);
  }
  for (std::int64_t n = s.chunks() - 1; n >= 0; --n) {
    with.run(sdm_gather<G>, given(cotangent), given(c.k_idx), given(tables.tail), made(m), s, n);
    with.run(sdm_solve_back<X>, given(tables.deltas_inverse), given(tables.pairs), given(dy),
             changed(m), s, n);
    with.run(sdm_rewind<B, G>, given(tables.order), given(tables.runs), given(tables.rows),
             given(tables.written), given(tables.head), given(tables.keep), given(beta), given(dy),
             given(m), given(errors), given(saved), changed(bank), changed(cotangent),
             made(of_state), made(of_cotangent), made(of_both), format, s, n);
  }
}

template <class Runner>
void run_every_chunk_kernel(Runner& with) {
  const sdm_sizes narrow{.streams = 2,
                         .slots = 7,
                         .width = 5,
                         .tokens = 7,
                         .writes = 2,
                         .reads = 3,
                         .decays = 1,
                         .chunk = 3};
  const sdm_sizes wide{.streams = 1,
                       .slots = 30,
                       .width = 300,
                       .tokens = 20,
                       .writes = 5,
                       .reads = 4,
                       .decays = 5,
                       .chunk = 9};
  for (const sdm_sizes& s : {narrow, wide}) {
    for (const saved_rows format : {saved_rows::as_stored, saved_rows::fp8, saved_rows::int4}) {
      run_chunks<float, float>(with, s, format);
      run_chunks<bf16, bf16>(with, s, format);
      run_chunks<bf16, float>(with, s, format);
      run_chunks<double, double>(with, s, format);
    }
  }
}

}  // namespace reprise::test
