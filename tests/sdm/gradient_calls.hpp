// Launches of the kernels of gradients.hpp on what plain_memory.hpp makes, for their tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "reprise/sdm/gradients.hpp"
#include "tests/ops/bench.hpp"
#include "tests/sdm/plain_memory.hpp"

namespace reprise::test {

template <class X>
std::vector<X> numbers_as(const std::vector<double>& values) {
  std::vector<X> made;
  for (const double value : values) made.push_back(static_cast<X>(value));
  return made;
}

inline std::vector<double> rounded_to_floats(const std::vector<double>& values) {
  const std::vector<float> floats = numbers_as<float>(values);
  return {floats.begin(), floats.end()};
}

// Each off by at most `tolerance` of the largest.
template <class X>
void expect_near_the_largest(const std::vector<X>& got, const std::vector<double>& want,
                             double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  double most = 1e-30;
  for (const double one : want) most = std::max(most, std::abs(one));
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got[i]), want[i], tolerance * most) << "element " << i;
  }
}

template <class X>
struct product_tables {
  std::vector<X> of_readings, of_errors;
};

template <class X>
product_tables<X> products_on(op_bench& bench, const memory_call& call, const memory_run& run,
                              place where = place::aligned) {
  const auto dy = bench.put(numbers_as<X>(call.dy), where);
  const auto m = bench.put(numbers_as<X>(run.m), where);
  const auto errors = bench.put(numbers_as<X>(run.errors), where);
  const auto beta = bench.put(numbers_as<X>(call.beta), where);
  const sdm_sizes& s = call.sizes;
  const auto pairs = static_cast<std::size_t>(s.streams * s.chunks() * s.chunk * s.chunk);
  const auto of_readings = bench.room<X>(pairs, where);
  const auto of_errors = bench.room<X>(pairs, where);
  launch(bench.on(), sdm_products<X>, read<X>{dy.span()}, read<X>{m.span()}, read<X>{errors.span()},
         read<X>{beta.span()}, write<X>{of_readings.span()}, write<X>{of_errors.span()}, s);
  return {bench.take(of_readings), bench.take(of_errors)};
}

template <class X>
struct event_gradients_of {
  std::vector<X> dk, dq, dg_by_write;
};

template <class X>
event_gradients_of<X> event_grads_on(op_bench& bench, const memory_call& call,
                                     const event_tables& from, place where = place::aligned) {
  const auto order = bench.put(from.order, where);
  const auto places = bench.put(from.place, where);
  const auto runs = bench.put(from.runs, where);
  const auto k_val = bench.put(numbers_as<X>(call.k_val), where);
  const auto q_val = bench.put(numbers_as<X>(call.q_val), where);
  const auto level = bench.put(from.level, where);
  const auto of_state = bench.put(numbers_as<X>(from.of_state), where);
  const auto of_cotangent = bench.put(numbers_as<X>(from.of_cotangent), where);
  const auto of_both = bench.put(numbers_as<X>(from.of_both), where);
  const auto of_readings = bench.put(numbers_as<X>(from.of_readings), where);
  const auto of_errors = bench.put(numbers_as<X>(from.of_errors), where);
  const auto dk = bench.room<X>(call.k_val.size(), where);
  const auto dq = bench.room<X>(call.q_val.size(), where);
  const auto dg = bench.room<X>(call.k_val.size(), where);
  launch(bench.on(), sdm_event_grads<X>, read<std::int32_t>{order.span()},
         read<std::int32_t>{places.span()}, read<std::int32_t>{runs.span()}, read<X>{k_val.span()},
         read<X>{q_val.span()}, read<double>{level.span()}, read<X>{of_state.span()},
         read<X>{of_cotangent.span()}, read<X>{of_both.span()}, read<X>{of_readings.span()},
         read<X>{of_errors.span()}, write<X>{dk.span()}, write<X>{dq.span()}, write<X>{dg.span()},
         call.sizes);
  return {bench.take(dk), bench.take(dq), bench.take(dg)};
}

template <class X>
struct token_gradients_of {
  std::vector<X> dv, dbeta, dg;
};

template <class X>
token_gradients_of<X> token_grads_on(op_bench& bench, const memory_call& call,
                                     const memory_run& run, const std::vector<X>& dg_by_write,
                                     place where = place::aligned) {
  const auto m = bench.put(numbers_as<X>(run.m), where);
  const auto errors = bench.put(numbers_as<X>(run.errors), where);
  const auto beta = bench.put(numbers_as<X>(call.beta), where);
  const auto by_write = bench.put(dg_by_write, where);
  const auto dv = bench.room<X>(call.v.size(), where);
  const auto dbeta = bench.room<X>(call.beta.size(), where);
  const auto dg = bench.room<X>(call.g.size(), where);
  launch(bench.on(), sdm_token_grads<X>, read<X>{m.span()}, read<X>{errors.span()},
         read<X>{beta.span()}, read<X>{by_write.span()}, write<X>{dv.span()},
         write<X>{dbeta.span()}, write<X>{dg.span()}, call.sizes);
  return {bench.take(dv), bench.take(dbeta), bench.take(dg)};
}

}  // namespace reprise::test
