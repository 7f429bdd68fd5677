// Calls of the kernels of gradients.hpp, step.hpp and bank.hpp, for runners of
// tests/ops/every_kernel.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/step.hpp"
#include "tests/sdm/gradient_calls.hpp"

namespace reprise::test {

// What a call takes by reference, as its views.
template <class T>
read<T> looked_at(const std::vector<T>& from) {
  return read<T>{view<const T>{from.data(), from.size()}};
}
template <class T>
write<T> written_to(std::vector<T>& to) {
  return write<T>{view<T>{to.data(), to.size()}};
}
template <class T>
inout<T> changed_in(std::vector<T>& at) {
  return inout<T>{view<T>{at.data(), at.size()}};
}

template <class X, class Runner>
void run_sdm_gradients(Runner& with) {
  // A hot slot, and one of its reads and writes in five left out; products in two parts; a decay a
  // token and a write.
  for (const sdm_sizes& sizes : std::vector<sdm_sizes>{
           {1, 1, 3, 60, 1, 1, 1, 40}, {2, 9, 300, 7, 4, 3, 4, 3}, {1, 90, 70, 70, 5, 2, 1, 70}}) {
    const memory_call call = random_call(sizes, {.seed = 50, .some_left_out = true});
    const memory_run run = in_doubles(call);
    const event_tables tables = tables_of(call, run);
    const auto dy = numbers_as<X>(call.dy);
    const auto m = numbers_as<X>(run.m);
    const auto errors = numbers_as<X>(run.errors);
    const auto beta = numbers_as<X>(call.beta);
    std::vector<X> of_readings(tables.of_readings.size(), X{9});
    std::vector<X> of_errors = of_readings;
    with.run(sdm_products<X>, looked_at(dy), looked_at(m), looked_at(errors), looked_at(beta),
             written_to(of_readings), written_to(of_errors), sizes);
    const auto k_val = numbers_as<X>(call.k_val);
    const auto q_val = numbers_as<X>(call.q_val);
    const auto of_state = numbers_as<X>(tables.of_state);
    const auto of_cotangent = numbers_as<X>(tables.of_cotangent);
    const auto of_both = numbers_as<X>(tables.of_both);
    std::vector<X> dk(k_val.size(), X{9});
    std::vector<X> dq(q_val.size(), X{9});
    std::vector<X> dg_by_write = dk;
    with.run(sdm_event_grads<X>, looked_at(tables.order), looked_at(tables.place),
             looked_at(tables.runs), looked_at(k_val), looked_at(q_val), looked_at(tables.level),
             looked_at(of_state), looked_at(of_cotangent), looked_at(of_both),
             looked_at(of_readings), looked_at(of_errors), written_to(dk), written_to(dq),
             written_to(dg_by_write), sizes);
    std::vector<X> dv(m.size(), X{9});
    std::vector<X> dbeta(beta.size(), X{9});
    std::vector<X> dg(call.g.size(), X{9});
    with.run(sdm_token_grads<X>, looked_at(m), looked_at(errors), looked_at(beta),
             looked_at(dg_by_write), written_to(dv), written_to(dbeta), written_to(dg), sizes);
  }
}

template <class B, class Runner>
void run_sdm_steps(Runner& with) {
  using X = sdm::arithmetic<B>;
  for (const sdm_sizes& sizes :
       std::vector<sdm_sizes>{{1, 4, 1, 1, 2, 1, 1, 1}, {3, 80, 300, 1, 70, 65, 70, 1}}) {
    const memory_call call = random_call(sizes, {.seed = 51, .some_left_out = sizes.writes > 2});
    std::vector<B> bank;
    for (const double one : call.bank) bank.push_back(sdm::stored<B>(static_cast<X>(one)));
    const auto k_val = numbers_as<X>(call.k_val);
    const auto v = numbers_as<X>(call.v);
    const auto beta = numbers_as<X>(call.beta);
    const auto g = numbers_as<X>(call.g);
    const auto q_val = numbers_as<X>(call.q_val);
    std::vector<X> readings(v.size(), X{9});
    with.run(sdm_step<B>, changed_in(bank), looked_at(call.k_idx), looked_at(k_val), looked_at(v),
             looked_at(beta), looked_at(g), looked_at(call.q_idx), looked_at(q_val),
             written_to(readings), sizes);
  }
}

template <class T>
std::vector<T> random_numbers(std::size_t count, std::uint64_t seed) {
  std::vector<T> made;
  for (const float one : random_values<float>(count, seed)) {
    made.push_back(sdm::stored<T>(static_cast<sdm::arithmetic<T>>(one)));
  }
  return made;
}

// The rule is `add`: the one under which a gradient is both read and written.
template <class B, class Runner>
void run_sdm_banks(Runner& with) {
  using X = sdm::arithmetic<B>;
  const std::vector<std::int32_t> add{static_cast<std::int32_t>(gradient_rule::add)};
  for (const auto& [each, streams] : std::vector<std::array<std::size_t, 2>>{{1, 1}, {1003, 3}}) {
    const auto initial = random_numbers<X>(each, 52);
    std::vector<B> bank(each * streams, B{});
    with.run(sdm_expand<B>, looked_at(initial), written_to(bank),
             static_cast<std::int64_t>(streams));
    const auto cotangent = random_numbers<B>(each * streams, 53);
    auto grad = random_numbers<X>(each, 54);
    with.run(sdm_bank_grad<B>, looked_at(cotangent), changed_in(grad), looked_at(add),
             static_cast<std::int64_t>(streams));
  }
}

template <class To, class From, class Runner>
void run_sdm_cast(Runner& with) {
  const auto from = random_numbers<From>(1003, 55);
  std::vector<To> to(from.size(), To{});
  with.run(sdm_cast<To, From>, looked_at(from), written_to(to));
}

template <class Runner>
void run_every_gradient_kernel(Runner& with) {
  run_sdm_gradients<float>(with);
  run_sdm_gradients<double>(with);
  run_sdm_steps<float>(with);
  run_sdm_steps<bf16>(with);
  run_sdm_steps<double>(with);
  run_sdm_banks<float>(with);
  run_sdm_banks<bf16>(with);
  run_sdm_banks<double>(with);
  run_sdm_cast<float, float>(with);
  run_sdm_cast<bf16, bf16>(with);
  run_sdm_cast<bf16, float>(with);
  run_sdm_cast<float, bf16>(with);
  run_sdm_cast<double, double>(with);
}

}  // namespace reprise::test
