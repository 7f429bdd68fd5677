#include "reprise/ops/embedding_grad.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/ops/linear.hpp"

namespace reprise::REPRISE_BODIES {

namespace ops {

namespace {

constexpr std::int64_t embedding_tile = 64;  // columns that are summed side by side

// The rows of each token, in increasing order: those of token v are [begins[v], begins[v + 1]).
struct rows_by_token {
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> rows;

  rows_by_token(read<std::int32_t> tokens, std::int64_t vocabulary)
      : begins(static_cast<std::size_t>(vocabulary) + 1) {
    std::vector<std::int32_t> all(tokens.size());
    read_elements<const std::int32_t>(tokens.data(), all.size(), all.data());
    const auto is_one = [&](std::int32_t token) { return token >= 0 && token < vocabulary; };
    for (const std::int32_t token : all) {
      if (is_one(token)) ++begins[static_cast<std::size_t>(token) + 1];
    }
    for (std::size_t v = 1; v < begins.size(); ++v) begins[v] += begins[v - 1];
    rows.resize(static_cast<std::size_t>(begins.back()));
    std::vector<std::int64_t> next = begins;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!is_one(all[i])) continue;
      std::int64_t& place = next[static_cast<std::size_t>(all[i])];
      rows[static_cast<std::size_t>(place++)] = static_cast<std::int64_t>(i);
    }
  }
};

struct table_grad {
  const rows_by_token& of;
  pointer_to<const float> dy;
  pointer_to<float> dtable;
  gradient_rule rule;
  std::int64_t width;

  // Columns [column, column + count), at most a tile of them, of every token.
  void columns(std::int64_t column, std::int64_t count) const {
    for (std::size_t v = 0; v + 1 < of.begins.size(); ++v) {
      const std::int64_t end = of.begins[v + 1];
      float totals[embedding_tile] = {};
      for (std::int64_t begin = of.begins[v]; begin < end; begin += sum_part) {
        float sums[embedding_tile] = {};
        for (std::int64_t l = begin; l < std::min(begin + sum_part, end); ++l) {
          const std::int64_t row = of.rows[static_cast<std::size_t>(l)];
          float values[embedding_tile] = {};
          read_elements<const float>(dy + (row * width + column), static_cast<std::size_t>(count),
                                     values);
          for (std::int64_t j = 0; j < embedding_tile; ++j) sums[j] += values[j];
        }
        for (std::int64_t j = 0; j < embedding_tile; ++j) totals[j] += sums[j];
      }
      if (REPRISE_MUTANT(absent_tokens_keep_their_gradient) && of.begins[v] == end) continue;
      put_row(dtable + (static_cast<std::int64_t>(v) * width + column), totals, count);
    }
  }

 private:
  void put_row(pointer_to<float> to, const float* sums, std::int64_t count) const {
    for (std::int64_t j = 0; j < count; ++j) {
      const float old = rule == gradient_rule::add ? static_cast<float>(to[j]) : 0.0f;
      to[j] = put(rule, old, sums[j]);
    }
  }
};

}  // namespace

std::int64_t embedding_grad_vocabulary(std::size_t tokens, std::size_t dy, std::size_t dtable,
                                       std::size_t rule, std::int64_t width) {
  constexpr const char* op = "embedding_grad";
  const std::int64_t vocabulary = whole_rows(op, "dtable", dtable, width);
  need_at_most(op, "the width", width, widest_embedding_grad);
  need_at_most(op, "the number of tokens", static_cast<std::int64_t>(tokens),
               std::numeric_limits<std::int32_t>::max());
  need_elements(op, "dy", dy, tokens * static_cast<std::size_t>(width));
  need_elements(op, "the rule", rule, 1);
  return vocabulary;
}

void embedding_grad_cpu(cpu_call& call, read<std::int32_t> tokens, read<float> dy,
                        inout<float> dtable, read<std::int32_t> rule, std::int64_t width) {
  const std::int64_t vocabulary =
      embedding_grad_vocabulary(tokens.size(), dy.size(), dtable.size(), rule.size(), width);
  const gradient_rule what = gradient_rule_of(rule[0]);
  if (what == gradient_rule::leave) return;
  const rows_by_token rows{tokens, vocabulary};
  const table_grad sums{rows, dy.data(), dtable.data(), what, width};
  const std::int64_t terms = static_cast<std::int64_t>(tokens.size()) + vocabulary;
  const std::int64_t grain =
      std::max<std::int64_t>(1, 16384 / (embedding_tile * std::max<std::int64_t>(1, terms)));
  call.parallel_for((width + embedding_tile - 1) / embedding_tile, grain,
                    [&](std::int64_t first, std::int64_t last) {
                      for (std::int64_t at = first; at < last; ++at) {
                        sums.columns(at * embedding_tile,
                                     std::min(embedding_tile, width - at * embedding_tile));
                      }
                    });
}

}  // namespace ops

void add_embedding_grad(kernel_registry& registry) {
  registry.add(embedding_grad,
               {{device_kind::cpu, "generic", ops::embedding_grad_cpu},
                {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(ops::embedding_grad_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
