// Launches of sdm_order, sdm_weights, sdm_pairs and sdm_invert: on a bench, and on host memory for
// tests of all kernels (tests/ops/every_kernel.hpp says what a runner is).
#pragma once

#include <cstdint>
#include <vector>

#include "reprise/sdm/order.hpp"
#include "reprise/sdm/pairs.hpp"
#include "reprise/sdm/weights.hpp"
#include "tests/ops/bench.hpp"
#include "tests/sdm/support.hpp"

namespace reprise::test {

inline std::size_t chunk_elements(const sdm_sizes& sizes, std::int64_t each) {
  return static_cast<std::size_t>(sizes.streams * sizes.chunks() * each);
}

template <class X>
struct chunk_weights {
  std::vector<double> level;
  std::vector<X> head, tail, keep;
};

template <class X>
struct chunk_pairs {
  std::vector<X> recalls, readings;
};

inline chunk_orders order_on(op_bench& bench, const sdm_case& of, place where = place::aligned) {
  const std::size_t events = chunk_elements(of.sizes, of.sizes.events());
  const auto k_idx = bench.put(of.k_idx, where);
  const auto q_idx = bench.put(of.q_idx, where);
  const auto order = bench.room<std::int32_t>(events, where);
  const auto place_of = bench.room<std::int32_t>(events, where);
  const auto run_of = bench.room<std::int32_t>(events, where);
  const auto runs =
      bench.room<std::int32_t>(chunk_elements(of.sizes, of.sizes.events() + 1), where);
  const auto rows = bench.room<std::int32_t>(events, where);
  const auto written = bench.room<std::int32_t>(events, where);
  const auto to = [](const guarded<std::int32_t>& at) { return write<std::int32_t>{at.span()}; };
  launch(bench.on(), sdm_order, read<std::int32_t>{k_idx.span()}, read<std::int32_t>{q_idx.span()},
         to(order), to(place_of), to(run_of), to(runs), to(rows), to(written), of.sizes);
  return {bench.take(order), bench.take(place_of), bench.take(run_of),
          bench.take(runs),  bench.take(rows),     bench.take(written)};
}

template <class X>
chunk_weights<X> weights_on(op_bench& bench, const sdm_case& of, const chunk_orders& by,
                            place where = place::aligned) {
  const std::size_t events = chunk_elements(of.sizes, of.sizes.events());
  const auto order = bench.put(by.order, where);
  const auto runs = bench.put(by.runs, where);
  const auto k_val = bench.put(as<X>(of.k_val), where);
  const auto g = bench.put(as<X>(of.g), where);
  const auto q_val = bench.put(as<X>(of.q_val), where);
  const auto level = bench.room<double>(events, where);
  const auto head = bench.room<X>(events, where);
  const auto tail = bench.room<X>(events, where);
  const auto keep = bench.room<X>(events, where);
  launch(bench.on(), sdm_weights<X>, read<std::int32_t>{order.span()},
         read<std::int32_t>{runs.span()}, read<X>{k_val.span()}, read<X>{g.span()},
         read<X>{q_val.span()}, write<double>{level.span()}, write<X>{head.span()},
         write<X>{tail.span()}, write<X>{keep.span()}, of.sizes);
  return {bench.take(level), bench.take(head), bench.take(tail), bench.take(keep)};
}

template <class X>
chunk_pairs<X> pairs_on(op_bench& bench, const sdm_case& of, const chunk_orders& by,
                        const std::vector<double>& levels, place where = place::aligned) {
  const std::size_t square = chunk_elements(of.sizes, of.sizes.chunk * of.sizes.chunk);
  const auto order = bench.put(by.order, where);
  const auto place_of = bench.put(by.place, where);
  const auto run_of = bench.put(by.run_of, where);
  const auto runs = bench.put(by.runs, where);
  const auto k_val = bench.put(as<X>(of.k_val), where);
  const auto q_val = bench.put(as<X>(of.q_val), where);
  const auto level = bench.put(levels, where);
  const auto recalls = bench.room<X>(square, where);
  const auto readings = bench.room<X>(square, where);
  const auto in = [](const guarded<std::int32_t>& at) { return read<std::int32_t>{at.span()}; };
  launch(bench.on(), sdm_pairs<X>, in(order), in(place_of), in(run_of), in(runs),
         read<X>{k_val.span()}, read<X>{q_val.span()}, read<double>{level.span()},
         write<X>{recalls.span()}, write<X>{readings.span()}, of.sizes);
  return {bench.take(recalls), bench.take(readings)};
}

template <class X>
std::vector<X> inverse_on(op_bench& bench, const sdm_sizes& sizes, const std::vector<X>& recalls,
                          const std::vector<X>& betas, sdm_inverse which,
                          place where = place::aligned) {
  const auto a = bench.put(recalls, where);
  const auto b = bench.put(betas, where);
  const auto inverse = bench.room<X>(recalls.size(), where);
  launch(bench.on(), sdm_invert<X>, read<X>{a.span()}, read<X>{b.span()}, write<X>{inverse.span()},
         which, sizes);
  return bench.take(inverse);
}

// As the arguments of a call on host memory.
template <class T>
read<T> given(const std::vector<T>& from) {
  return read<T>{view<const T>{from.data(), from.size()}};
}
template <class T>
write<T> made(std::vector<T>& to) {
  return write<T>{view<T>{to.data(), to.size()}};
}

// What these calls write is 9 before them.
template <class Runner>
void run_order_call(Runner& with, const sdm_case& of) {
  const std::vector<std::int32_t> nines(chunk_elements(of.sizes, of.sizes.events()), 9);
  chunk_orders to{nines, nines, nines, nines, nines, nines};
  to.runs.resize(chunk_elements(of.sizes, of.sizes.events() + 1), 9);
  with.run(sdm_order, given(of.k_idx), given(of.q_idx), made(to.order), made(to.place),
           made(to.run_of), made(to.runs), made(to.rows), made(to.written), of.sizes);
}

template <class X, class Runner>
void run_weights_call(Runner& with, const sdm_case& of) {
  const chunk_orders by = plain_order(of);
  const auto k_val = as<X>(of.k_val);
  const auto g = as<X>(of.g);
  const auto q_val = as<X>(of.q_val);
  const std::vector<X> nines(by.order.size(), X{9});
  chunk_weights<X> to{std::vector<double>(by.order.size(), 9.0), nines, nines, nines};
  with.run(sdm_weights<X>, given(by.order), given(by.runs), given(k_val), given(g), given(q_val),
           made(to.level), made(to.head), made(to.tail), made(to.keep), of.sizes);
}

template <class X, class Runner>
void run_pairs_calls(Runner& with, const sdm_case& of) {
  const chunk_orders by = plain_order(of);
  const auto k_val = as<X>(of.k_val);
  const auto q_val = as<X>(of.q_val);
  const auto beta = as<X>(of.beta);
  const std::vector<double> level = plain_levels(of);
  const std::vector<X> nines(chunk_elements(of.sizes, of.sizes.chunk * of.sizes.chunk), X{9});
  chunk_pairs<X> to{nines, nines};
  with.run(sdm_pairs<X>, given(by.order), given(by.place), given(by.run_of), given(by.runs),
           given(k_val), given(q_val), given(level), made(to.recalls), made(to.readings), of.sizes);
  for (const auto which : {sdm_inverse::scaled_columns, sdm_inverse::scaled_rows}) {
    const std::vector<X> recalls = to.recalls;
    std::vector<X> inverse = nines;
    with.run(sdm_invert<X>, given(recalls), given(beta), made(inverse), which, of.sizes);
  }
}

}  // namespace reprise::test
