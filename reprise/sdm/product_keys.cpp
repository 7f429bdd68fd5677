#include "reprise/sdm/product_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/rows.hpp"
#include "reprise/ops/slot_sum.hpp"

namespace reprise::REPRISE_BODIES {

namespace sdm {

namespace {

void check_keys(const char* op, std::int64_t n, std::int64_t k) {
  if (n < 1 || n > most_half_keys) {
    throw usage_error{fmt::format("{}: a half has {} keys; give 1 at least and {} at most", op, n,
                                  most_half_keys)};
  }
  if (k < 1 || k > most_chosen_slots || k > n * n) {
    throw usage_error{
        fmt::format("{}: {} slots are to be chosen of {}; give 1 at least and {} at "
                    "most",
                    op, k, n * n, std::min(most_chosen_slots, n * n))};
  }
}

// One half of a row: its scores, and its keys by rank, the `kept` best of them.
class ranked_half {
 public:
  void rank(pointer_to<const float> scores, std::int64_t n, std::int64_t kept) {
    scores_.resize(static_cast<std::size_t>(n));
    read_elements<const float>(scores, scores_.size(), scores_.data());
    keys_.resize(scores_.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      keys_[i] = std::uint64_t{order_of(scores_[i])} << 32 | (last_ - i);
    }
    const auto end = keys_.begin() + kept;
    if (end != keys_.end()) std::nth_element(keys_.begin(), end, keys_.end(), std::greater<>{});
    std::sort(keys_.begin(), end, std::greater<>{});
  }

  float score(std::int64_t key) const { return scores_[static_cast<std::size_t>(key)]; }
  std::int64_t key_at(std::int64_t rank) const {
    const std::uint64_t key = keys_[static_cast<std::size_t>(rank)];
    return static_cast<std::int64_t>(last_ - (key & last_));
  }

 private:
  static constexpr std::uint64_t last_ = 0xffffffff;

  std::vector<float> scores_;
  std::vector<std::uint64_t> keys_;  // (order of the score, last_ - key)
};

// The slots of one row at a time; scratch is kept from row to row.
class slot_choice {
 public:
  slot_choice(std::int64_t n, std::int64_t k)
      : n_{n}, k_{k}, kept_{std::min(k, n)}, slots_(static_cast<std::size_t>(k)) {}

  // Ascending.
  const std::vector<std::int64_t>& choose(pointer_to<const float> first,
                                          pointer_to<const float> second) {
    first_.rank(first, n_, kept_);
    second_.rank(second, n_, kept_);
    gather();
    const auto end = candidates_.begin() + k_;
    if (end != candidates_.end()) {
      std::nth_element(candidates_.begin(), end, candidates_.end(), std::greater<>{});
    }
    std::transform(candidates_.begin(), end, slots_.begin(), [&](std::uint64_t candidate) {
      const auto i = static_cast<std::int64_t>(candidate >> 8 & 0xff);
      const auto j = static_cast<std::int64_t>(candidate & 0xff);
      return first_.key_at(i) * n_ + second_.key_at(j);
    });
    std::sort(slots_.begin(), slots_.end());
    return slots_;
  }

  float score(std::int64_t slot) const {
    return math::add(first_.score(slot / n_), second_.score(slot % n_));
  }

 private:
  // Each pair of ranks that may be among the best, as (order of the sum, sum of ranks, first rank,
  // second): the greatest is the best. Sums fall as either rank rises, so a row of them ends early.
  void gather() {
    static_assert(most_chosen_slots <= 256, "a rank has eight bits of a candidate");
    const std::int64_t d = diagonal_of(k_);
    const std::uint32_t least = sum_at(d, d);
    candidates_.clear();
    for (std::int64_t i = 0; i < kept_; ++i) {
      const std::size_t before = candidates_.size();
      for (std::int64_t j = 0; j < kept_; ++j) {
        const std::uint32_t sum = sum_at(i, j);
        if (sum < least) break;
        auto tie = static_cast<std::uint64_t>(i + j);
        if (REPRISE_MUTANT(equal_slots_take_the_better_ranks)) tie = 0xffff - tie;
        candidates_.push_back(std::uint64_t{sum} << 32 | tie << 16 |
                              static_cast<std::uint64_t>(i << 8 | j));
      }
      if (candidates_.size() == before) break;
    }
  }

  std::uint32_t sum_at(std::int64_t i, std::int64_t j) const {
    return order_of(math::add(first_.score(first_.key_at(i)), second_.score(second_.key_at(j))));
  }

  std::int64_t n_, k_, kept_;
  ranked_half first_, second_;
  std::vector<std::uint64_t> candidates_;
  std::vector<std::int64_t> slots_;
};

// Of a row's scores, in place.
void softmax(std::vector<float>& scores) {
  float top = -std::numeric_limits<float>::infinity();
  for (const float score : scores) top = score > top ? score : top;
  for (float& score : scores) score = math::exp<float>(math::sub(score, top));
  const float sum = ops::slot_sum<ops::row_slots>(
      static_cast<std::int64_t>(scores.size()),
      [&](std::int64_t l) { return scores[static_cast<std::size_t>(l)]; });
  for (float& score : scores) score = math::div(score, sum);
}

// What reaches the chosen scores of one row.
void scores_grad(std::vector<float>& val, const std::vector<float>& dval) {
  float along =
      ops::slot_sum<ops::row_slots>(static_cast<std::int64_t>(val.size()), [&](std::int64_t l) {
        const auto at = static_cast<std::size_t>(l);
        return math::mul(val[at], dval[at]);
      });
  if (REPRISE_MUTANT(chosen_slots_are_graded_apart)) along = 0.0f;
  for (std::size_t l = 0; l < val.size(); ++l) {
    val[l] = math::mul(val[l], math::sub(dval[l], along));
  }
}

}  // namespace

std::int64_t product_key_top_rows(std::size_t first, std::size_t second, std::size_t idx,
                                  std::size_t val, std::int64_t n, std::int64_t k,
                                  std::int64_t tokens) {
  constexpr const char* op = "product_key_top";
  check_keys(op, n, k);
  const std::int64_t rows = ops::whole_rows(op, "first", first, n);
  ops::need_elements(op, "second", second, first);
  ops::need_elements(op, "idx", idx, static_cast<std::size_t>(rows * k));
  ops::need_elements(op, "val", val, static_cast<std::size_t>(rows * k));
  if (rows == 0) return 0;
  if (tokens < 1 || rows % tokens != 0) {
    throw usage_error{fmt::format(
        "{}: {} rows are no whole streams of {} tokens; give whole streams", op, rows, tokens)};
  }
  const std::int64_t most = std::numeric_limits<std::int32_t>::max() / (n * n);
  if (rows / tokens > most) {
    throw usage_error{fmt::format(
        "{}: {} streams of {} slots have more rows than an index of 31 bits tells apart; give {} "
        "streams at most",
        op, rows / tokens, n * n, most)};
  }
  return rows;
}

std::int64_t product_key_grad_rows(std::size_t idx, std::size_t val, std::size_t dval,
                                   std::size_t dfirst, std::size_t dsecond, std::int64_t n,
                                   std::int64_t k) {
  constexpr const char* op = "product_key_grad";
  check_keys(op, n, k);
  const std::int64_t rows = ops::whole_rows(op, "idx", idx, k);
  ops::need_elements(op, "val", val, idx);
  ops::need_elements(op, "dval", dval, idx);
  ops::need_elements(op, "dfirst", dfirst, static_cast<std::size_t>(rows * n));
  ops::need_elements(op, "dsecond", dsecond, static_cast<std::size_t>(rows * n));
  return rows;
}

void product_key_top_cpu(cpu_call& call, read<float> first, read<float> second,
                         write<std::int32_t> idx, write<float> val, std::int64_t n, std::int64_t k,
                         std::int64_t tokens) {
  const std::int64_t rows =
      product_key_top_rows(first.size(), second.size(), idx.size(), val.size(), n, k, tokens);
  call.parallel_for(rows, std::max<std::int64_t>(1, 4096 / n),
                    [&](std::int64_t begin, std::int64_t end) {
                      slot_choice choice{n, k};
                      std::vector<float> scores(static_cast<std::size_t>(k));
                      for (std::int64_t row = begin; row < end; ++row) {
                        const std::vector<std::int64_t>& slots =
                            choice.choose(first.data() + row * n, second.data() + row * n);
                        const std::int64_t bank = row / tokens * n * n;
                        for (std::size_t l = 0; l < slots.size(); ++l) {
                          scores[l] = choice.score(slots[l]);
                          idx.data()[row * k + static_cast<std::int64_t>(l)] =
                              static_cast<std::int32_t>(bank + slots[l]);
                        }
                        softmax(scores);
                        write_elements<float>(scores.data(), scores.size(), val.data() + row * k);
                      }
                    });
}

void product_key_grad_cpu(cpu_call& call, read<std::int32_t> idx, read<float> val, read<float> dval,
                          write<float> dfirst, write<float> dsecond, std::int64_t n,
                          std::int64_t k) {
  const std::int64_t rows = product_key_grad_rows(idx.size(), val.size(), dval.size(),
                                                  dfirst.size(), dsecond.size(), n, k);
  call.parallel_for(
      rows, std::max<std::int64_t>(1, 16384 / n), [&](std::int64_t begin, std::int64_t end) {
        const auto chosen = static_cast<std::size_t>(k);
        const auto keys = static_cast<std::size_t>(n);
        std::vector<float> ds(chosen);
        std::vector<float> above(chosen);
        std::vector<float> of_first(keys);
        std::vector<float> of_second(keys);
        for (std::int64_t row = begin; row < end; ++row) {
          read_elements<const float>(val.data() + row * k, chosen, ds.data());
          read_elements<const float>(dval.data() + row * k, chosen, above.data());
          scores_grad(ds, above);
          std::ranges::fill(of_first, 0.0f);
          std::ranges::fill(of_second, 0.0f);
          for (std::size_t l = 0; l < chosen; ++l) {
            const std::int64_t at = idx.data()[row * k + static_cast<std::int64_t>(l)];
            if (at < 0) continue;
            const std::int64_t slot = at % (n * n);
            float& i = of_first[static_cast<std::size_t>(slot / n)];
            float& j = of_second[static_cast<std::size_t>(slot % n)];
            i = math::add(i, ds[l]);
            j = math::add(j, ds[l]);
          }
          write_elements<float>(of_first.data(), keys, dfirst.data() + row * n);
          write_elements<float>(of_second.data(), keys, dsecond.data() + row * n);
        }
      });
}

}  // namespace sdm

void add_product_keys(kernel_registry& registry) {
  registry.add(product_key_top,
               {{device_kind::cpu, "generic", sdm::product_key_top_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::product_key_top_cuda)}});
  registry.add(product_key_grad,
               {{device_kind::cpu, "generic", sdm::product_key_grad_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(sdm::product_key_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
