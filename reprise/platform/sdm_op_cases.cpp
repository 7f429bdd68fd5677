#include "reprise/platform/sdm_op_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "reprise/device/cpu_call.hpp"
#include "reprise/platform/op_values.hpp"
#include "reprise/sdm/backward.hpp"
#include "reprise/sdm/bank.hpp"
#include "reprise/sdm/forward.hpp"
#include "reprise/sdm/gradients.hpp"
#include "reprise/sdm/order.hpp"
#include "reprise/sdm/pairs.hpp"
#include "reprise/sdm/passes.hpp"
#include "reprise/sdm/product_keys.hpp"
#include "reprise/sdm/projection.hpp"
#include "reprise/sdm/step.hpp"
#include "reprise/sdm/weights.hpp"

namespace reprise {

namespace {

using op_values::count_of;
using op_values::in;
using op_values::random_values;
using op_values::room;
using op_values::to;
using see_case = std::function<void(const op_case&)>;
using indices = std::vector<std::int32_t>;

std::size_t count(std::int64_t elements) {
  return static_cast<std::size_t>(elements);
}

// Numbers of any type on [low, low + span).
template <class T>
std::vector<T> numbers(std::int64_t elements, std::uint64_t seed, double low, double span) {
  std::mt19937_64 draw{seed};
  std::vector<T> values(count(elements));
  for (T& value : values) {
    const double at = low + span * static_cast<double>(draw() >> 40) * 0x1p-24;
    if constexpr (std::is_same_v<T, bf16>) {
      value = narrow<bf16>(static_cast<float>(at));
    } else {
      value = static_cast<T>(at);
    }
  }
  return values;
}

// Each token's slots: some of the first few, which all tokens are fond of, the rest anywhere; one
// token in seven names a row outside of its stream.
indices slots_of(const sdm_sizes& s, std::int64_t each, std::uint64_t seed) {
  std::mt19937_64 draw{seed};
  std::vector<std::int64_t> order(count(s.slots));
  indices made;
  for (std::int64_t token = 0; token < s.streams * s.tokens; ++token) {
    std::iota(order.begin(), order.end(), 0);
    for (std::int64_t i = 0; i < each; ++i) {
      const auto among =
          static_cast<std::uint64_t>(i % 2 == 0 ? s.slots - i : std::min(s.slots - i, each + 2));
      std::swap(order[count(i)], order[count(i) + draw() % among]);
    }
    std::sort(order.begin(), order.begin() + each);
    const std::int64_t first = token / s.tokens * s.slots;
    for (std::int64_t i = 0; i < each; ++i) {
      const bool astray = token % 7 == 6 && i + 1 == each;
      made.push_back(static_cast<std::int32_t>(astray ? s.rows() + 5 : first + order[count(i)]));
    }
  }
  return made;
}

// Shows a kernel's case and runs its CPU body on the same memory.
class chain {
 public:
  chain(const see_case& see, std::string name) : see_{see}, name_{std::move(name)} {}

  template <class... A>
  void run(const kernel<void(A...)>& k, void (*body)(cpu_call&, A...),
           std::type_identity_t<A>... arguments) const {
    see_(case_of(k, name_, arguments...));
    cpu_call call{{}, {}};
    body(call, arguments...);
  }

 private:
  const see_case& see_;
  std::string name_;
};

template <class T>
read<T> r(const std::vector<T>& values) {
  return read<T>{in(values)};
}
template <class T>
write<T> w(std::vector<T>& values) {
  return write<T>{to(values)};
}
template <class T>
inout<T> rw(std::vector<T>& values) {
  return inout<T>{to(values)};
}

template <class B, class G>
void show_passes(const see_case& see, const sdm_sizes& s, saved_rows format) {
  using X = sdm::arithmetic<B>;
  const std::int64_t tokens = s.streams * s.tokens;
  const sdm_counts n = counts_of(s, format, sizeof(B));
  const indices k_idx = slots_of(s, s.writes, 1);
  const indices q_idx = slots_of(s, s.reads, 2);
  const auto k_val = numbers<X>(tokens * s.writes, 3, -0.5, 1.5);
  const auto q_val = numbers<X>(tokens * s.reads, 4, -0.5, 1.5);
  const auto g = numbers<X>(tokens * s.decays, 5, -3.0, 3.0);
  const auto beta = numbers<X>(tokens, 6, 0.0, 1.0);
  const auto v = numbers<X>(n.values, 7, -2.0, 4.0);
  const auto dy = numbers<X>(n.values, 8, -2.0, 4.0);
  auto bank = numbers<B>(s.rows() * s.width, 9, -2.0, 4.0);
  auto cotangent = numbers<G>(s.rows() * s.width, 10, -2.0, 4.0);

  auto order = room<std::int32_t>(count(n.events));
  auto place = order, run_of = order, rows = order, written = order;
  auto runs = room<std::int32_t>(count(n.runs));
  auto level = room<double>(count(n.events));
  auto head = room<X>(count(n.events)), tail = head, keep = head;
  auto recalls = room<X>(count(n.pairs)), readings_of = recalls, inverse = recalls;
  std::vector<X> errors(count(n.values)), readings(count(n.values)), m(count(n.values));
  std::vector<std::uint8_t> saved(count(n.saved));

  const chain go{see, fmt::format("{} streams, {} of {} slots of {}, {} tokens in chunks of {}{}",
                                  s.streams, s.writes, s.slots, s.width, s.tokens, s.chunk,
                                  format == saved_rows::as_stored ? ""
                                  : format == saved_rows::fp8     ? ", fp8"
                                                                  : ", int4")};
  go.run(sdm_order, sdm::order_cpu, r(k_idx), r(q_idx), w(order), w(place), w(run_of), w(runs),
         w(rows), w(written), s);
  go.run(sdm_weights<X>, sdm::weights_cpu<X>, r(order), r(runs), r(k_val), r(g), r(q_val), w(level),
         w(head), w(tail), w(keep), s);
  go.run(sdm_pairs<X>, sdm::pairs_cpu<X>, r(order), r(place), r(run_of), r(runs), r(k_val),
         r(q_val), r(level), w(recalls), w(readings_of), s);
  go.run(sdm_invert<X>, sdm::invert_cpu<X>, r(recalls), r(beta), w(inverse),
         sdm_inverse::scaled_columns, s);
  for (std::int64_t c = 0; c < s.chunks(); ++c) {
    go.run(sdm_recall<B>, sdm::recall_cpu<B>, r(bank), r(k_idx), r(q_idx), r(head), r(v), w(errors),
           w(readings), s, c);
    go.run(sdm_solve<X>, sdm::solve_cpu<X>, r(inverse), r(readings_of), r(beta), rw(errors),
           rw(readings), s, c);
    go.run(sdm_write<B>, sdm::write_cpu<B>, r(order), r(runs), r(rows), r(written), r(tail),
           r(keep), r(beta), r(errors), rw(bank), w(saved), format, s, c);
  }

  std::vector<X> of_state(count(n.parts)), of_cotangent(count(n.parts)), of_both(count(n.parts));
  go.run(sdm_invert<X>, sdm::invert_cpu<X>, r(recalls), r(beta), w(inverse),
         sdm_inverse::scaled_rows, s);
  for (std::int64_t c = s.chunks() - 1; c >= 0; --c) {
    go.run(sdm_gather<G>, sdm::gather_cpu<G>, r(cotangent), r(k_idx), r(tail), w(m), s, c);
    go.run(sdm_solve_back<X>, sdm::solve_back_cpu<X>, r(inverse), r(readings_of), r(dy), rw(m), s,
           c);
    go.run(sdm_rewind<B, G>, sdm::rewind_cpu<B, G>, r(order), r(runs), r(rows), r(written), r(head),
           r(keep), r(beta), r(dy), r(m), r(errors), r(saved), rw(bank), rw(cotangent), w(of_state),
           w(of_cotangent), w(of_both), format, s, c);
  }
  auto of_readings = room<X>(count(n.pairs)), of_errors = of_readings;
  auto dk = room<X>(count(n.writes)), dg_by_write = dk;
  auto dq = room<X>(q_val.size()), dv = room<X>(count(n.values));
  auto dbeta = room<X>(beta.size()), dg = room<X>(g.size());
  go.run(sdm_products<X>, sdm::products_cpu<X>, r(dy), r(m), r(errors), r(beta), w(of_readings),
         w(of_errors), s);
  go.run(sdm_event_grads<X>, sdm::event_grads_cpu<X>, r(order), r(place), r(runs), r(k_val),
         r(q_val), r(level), r(of_state), r(of_cotangent), r(of_both), r(of_readings), r(of_errors),
         w(dk), w(dq), w(dg_by_write), s);
  go.run(sdm_token_grads<X>, sdm::token_grads_cpu<X>, r(m), r(errors), r(beta), r(dg_by_write),
         w(dv), w(dbeta), w(dg), s);
}

template <class B>
void show_banks(const see_case& see) {
  using X = sdm::arithmetic<B>;
  for (const std::int64_t width : {1, 7, 256}) {
    const sdm_sizes s{.streams = 3,
                      .slots = 50,
                      .width = width,
                      .tokens = 1,
                      .writes = 5,
                      .reads = 4,
                      .decays = width == 7 ? 5 : 1,
                      .chunk = 1};
    const chain go{see, fmt::format("3 streams of 50 slots of {}", width)};
    const auto initial = numbers<X>(s.slots * width, 11, -2.0, 4.0);
    auto bank = room<B>(count(s.rows() * width));
    go.run(sdm_expand<B>, sdm::expand_cpu<B>, r(initial), w(bank), s.streams);
    auto grad = numbers<X>(s.slots * width, 12, -2.0, 4.0);
    for (const gradient_rule by : {gradient_rule::write, gradient_rule::add}) {
      const indices rule{static_cast<std::int32_t>(by)};
      go.run(sdm_bank_grad<B>, sdm::bank_grad_cpu<B>, r(bank), rw(grad), r(rule), s.streams);
    }
    auto copied = room<B>(bank.size());
    go.run(sdm_cast<B, B>, sdm::cast_cpu<B, B>, r(bank), w(copied));
    auto readings = room<X>(count(3 * width));
    const auto k_idx = slots_of(s, s.writes, 13);
    const auto q_idx = slots_of(s, s.reads, 14);
    const auto k_val = numbers<X>(3 * s.writes, 15, -0.5, 1.5);
    const auto q_val = numbers<X>(3 * s.reads, 16, -0.5, 1.5);
    const auto v = numbers<X>(3 * width, 17, -2.0, 4.0);
    const auto beta = numbers<X>(3, 18, 0.0, 1.0);
    const auto g = numbers<X>(3 * s.decays, 19, -3.0, 3.0);
    go.run(sdm_step<B>, sdm::step_cpu<B>, rw(bank), r(k_idx), r(k_val), r(v), r(beta), r(g),
           r(q_idx), r(q_val), w(readings), s);
  }
}

void show_casts(const see_case& see) {
  const chain go{see, "1003 elements"};
  const auto wide = random_values<float>(1003, 20);
  auto narrow_ones = room<bf16>(1003);
  go.run(sdm_cast<bf16, float>, sdm::cast_cpu<bf16, float>, r(wide), w(narrow_ones));
  auto again = room<float>(1003);
  go.run(sdm_cast<float, bf16>, sdm::cast_cpu<float, bf16>, r(narrow_ones), w(again));
}

void show_product_keys(const see_case& see) {
  struct shape {
    std::int64_t rows, n, k, tokens;
  };
  for (const auto& [rows, n, k, tokens] :
       {shape{2, 1, 1, 1}, shape{9, 3, 9, 3}, shape{21, 64, 64, 7}, shape{50, 192, 64, 25},
        shape{5, 257, 31, 5}, shape{4, 1024, 128, 4}}) {
    const std::string name = fmt::format("{} of {} x {} in {} rows", k, n, n, rows);
    auto first = random_values<float>(count_of(rows, n), 67, 3.0F);
    auto second = random_values<float>(count_of(rows, n), 68, 3.0F);
    for (const bool equal : {false, true}) {
      if (equal) {  // many are, in quarters
        for (float& one : first) one = static_cast<float>(static_cast<int>(one)) / 4;
        for (float& one : second) one = static_cast<float>(static_cast<int>(one)) / 4;
      }
      auto idx = room<std::int32_t>(count_of(rows, k));
      auto val = room<float>(count_of(rows, k));
      see(case_of(product_key_top, name + (equal ? ", with ties" : ""), read<float>{in(first)},
                  read<float>{in(second)}, write<std::int32_t>{to(idx)}, write<float>{to(val)}, n,
                  k, tokens));
    }
    indices idx;
    for (std::int64_t i = 0; i < rows * k; ++i) {
      idx.push_back(static_cast<std::int32_t>(i % k * (n * n / k) + i / k % (n * n / k)));
    }
    const auto val = random_values<float>(idx.size(), 69);
    const auto dval = random_values<float>(idx.size(), 70);
    auto dfirst = room<float>(count_of(rows, n));
    auto dsecond = room<float>(count_of(rows, n));
    see(case_of(product_key_grad, name, read<std::int32_t>{in(idx)}, read<float>{in(val)},
                read<float>{in(dval)}, write<float>{to(dfirst)}, write<float>{to(dsecond)}, n, k));
  }
}

void show_projections(const see_case& see) {
  for (const std::int64_t width : {1, 8, 61}) {
    const std::int64_t key_width = width == 8 ? 16 : 3, rows = 9;
    const chain go{see, fmt::format("{} rows, {} and 4 of {}", rows, width, key_width)};
    const auto z = random_values<float>(count(rows * sdm::projected(width, key_width)), 24, 30.0F);
    auto v = room<float>(count(rows * width));
    auto first = room<float>(count(2 * rows * key_width)), second = first;
    auto beta = room<float>(count(rows)), g = beta;
    go.run(sdm_split, sdm::split_cpu, r(z), w(v), w(first), w(second), w(beta), w(g), width,
           key_width, 4.0F);
    const auto dbeta = random_values<float>(beta.size(), 25);
    auto dz = room<float>(z.size());
    go.run(sdm_join, sdm::join_cpu, r(v), r(first), r(second), r(dbeta), r(dbeta), r(beta), r(g),
           w(dz), width, key_width);
  }
}

}  // namespace

void each_sdm_op_case(const std::function<void(const op_case&)>& see) {
  const sdm_sizes tiny{.slots = 4, .tokens = 3, .writes = 2, .reads = 2, .chunk = 2};
  const sdm_sizes ragged{.streams = 2,
                         .slots = 40,
                         .width = 300,
                         .tokens = 37,
                         .writes = 4,
                         .reads = 5,
                         .decays = 4,
                         .chunk = 16};
  const sdm_sizes wide{
      .slots = 3000, .width = 768, .tokens = 40, .writes = 64, .reads = 64, .chunk = 32};
  for (const sdm_sizes& s : {tiny, ragged, wide}) {
    show_passes<float, float>(see, s, saved_rows::as_stored);
    show_passes<bf16, bf16>(see, s, saved_rows::as_stored);
  }
  show_passes<bf16, float>(see, ragged, saved_rows::as_stored);
  show_passes<double, double>(see, ragged, saved_rows::as_stored);
  show_passes<bf16, bf16>(see, ragged, saved_rows::fp8);
  show_passes<float, float>(see, ragged, saved_rows::int4);
  show_banks<float>(see);
  show_banks<bf16>(see);
  show_banks<double>(see);
  show_casts(see);
  show_product_keys(see);
  show_projections(see);
}

}  // namespace reprise
