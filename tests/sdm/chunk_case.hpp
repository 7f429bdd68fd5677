// A call of the memory op for tests of the kernels of a chunk: its inputs, and by plain loops what
// the kernels of order, weights and pairs would give, so that these tests need none of them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "reprise/base/dtype.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::test::sdm_chunk {

using doubles = std::vector<double>;
using indices = std::vector<std::int32_t>;

inline std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

// What is written about: indices of one token ascend; hot ones are in most tokens.
struct chunk_case {
  sdm_sizes sizes;
  indices k_idx, q_idx;
  doubles bank, k_val, v, beta, g, q_val, dy, d_final;  // each exact in f32, the banks in bf16

  explicit chunk_case(const sdm_sizes& s, std::uint64_t seed = 1, double hot = 0.3) : sizes{s} {
    std::mt19937_64 draw{seed};
    const auto uniform = [&](double least, double most) {
      const double unit = static_cast<double>(draw() >> 40) * 0x1p-24;
      return static_cast<double>(static_cast<float>(least + unit * (most - least)));
    };
    const auto fill = [&](doubles& to, std::int64_t count, double least, double most) {
      to.resize(at(count));
      for (double& one : to) one = uniform(least, most);
    };
    const auto fill_rows = [&](doubles& to) {
      fill(to, s.rows() * s.width, -2, 2);
      for (double& one : to) one = widen(narrow<bf16>(static_cast<float>(one)));
    };
    const auto choose = [&](std::int64_t p, std::int64_t count, indices& to) {
      std::vector<std::int64_t> left;
      for (std::int64_t slot = 0; slot < s.slots; ++slot) left.push_back(slot);
      indices chosen;
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t one = uniform(0, 1) < hot ? 0 : draw() % left.size();
        chosen.push_back(static_cast<std::int32_t>(p * s.slots + left[one]));
        left.erase(left.begin() + static_cast<std::ptrdiff_t>(one));
      }
      std::sort(chosen.begin(), chosen.end());
      to.insert(to.end(), chosen.begin(), chosen.end());
    };
    for (std::int64_t p = 0; p < s.streams; ++p) {
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        choose(p, s.writes, k_idx);
        choose(p, s.reads, q_idx);
      }
    }
    const std::int64_t tokens = s.streams * s.tokens;
    const double share = 1.0 / static_cast<double>(s.writes);
    fill_rows(bank);
    fill(k_val, tokens * s.writes, 0.2 * share, 2 * share);
    fill(v, tokens * s.width, -2, 2);
    fill(beta, tokens, 0.05, 0.95);
    fill(g, tokens * s.decays, -1.0, 0.0);
    fill(q_val, tokens * s.reads, -0.5, 1.0);
    fill(dy, tokens * s.width, -1, 1);
    fill_rows(d_final);
  }

  bool is_row_of(std::int64_t p, std::int32_t row) const {
    return row >= p * sizes.slots && row < (p + 1) * sizes.slots;
  }
  double decay(std::int64_t token, std::int64_t w) const {
    return g[at(token * sizes.decays + (sizes.decays == 1 ? 0 : w))];
  }
};

// With indices that are no rows of their stream: below it, above it, and outside the bank.
inline chunk_case with_strays(const sdm_sizes& sizes, std::uint64_t seed) {
  chunk_case c{sizes, seed};
  const auto rows = static_cast<std::int32_t>(sizes.rows());
  const std::array<std::int32_t, 5> strays{-1, rows, 2'000'000'000, 0, rows - 1};
  for (std::size_t i = 0; i < c.k_idx.size(); i += 3) c.k_idx[i] = strays[i / 3 % 5];
  for (std::size_t i = 1; i < c.q_idx.size(); i += 4) c.q_idx[i] = strays[i / 4 % 5];
  // Rows 0 and the last belong to the first and the last stream, where a token may name them.
  const std::int64_t tokens = sizes.tokens;
  for (std::int64_t token = 0; token < sizes.streams * tokens; ++token) {
    const std::int64_t p = token / tokens;
    const auto no_row = [&](indices& all, std::int64_t per_token) {
      for (std::int64_t i = 0; i < per_token; ++i) {
        std::int32_t& one = all[at(token * per_token + i)];
        for (std::int64_t j = 0; j < i; ++j) {
          if (all[at(token * per_token + j)] == one && c.is_row_of(p, one)) one = -1;
        }
      }
    };
    no_row(c.k_idx, sizes.writes);
    no_row(c.q_idx, sizes.reads);
  }
  return c;
}

// Two streams; what the second one's tokens name first is no row.
inline chunk_case two_streams(std::uint64_t seed) {
  chunk_case c{{.streams = 2,
                .slots = 9,
                .width = 24,
                .tokens = 30,
                .writes = 4,
                .reads = 5,
                .decays = 1,
                .chunk = 8},
               seed};
  for (std::int64_t token = 30; token < 60; ++token) {
    c.k_idx[at(token * 4)] = -1;
    c.q_idx[at(token * 5)] = -1;
  }
  return c;
}

// Instead of none of them: it is the first stream's.
inline void name_the_first_row(chunk_case& of) {
  std::replace(of.k_idx.begin(), of.k_idx.end(), -1, 0);
  std::replace(of.q_idx.begin(), of.q_idx.end(), -1, 0);
}

// An event with the sum of decays on its slot up to it.
struct timed_event {
  std::int64_t token = 0;  // of the chunk
  std::int64_t event = 0;
  bool writes = false;
  double value = 0;  // k or c
  double level = 0;
};

using runs_by_row = std::map<std::int32_t, std::vector<timed_event>>;

inline runs_by_row runs_of(const chunk_case& c, std::int64_t p, std::int64_t n) {
  const sdm_sizes& s = c.sizes;
  runs_by_row runs;
  for (std::int64_t t = 0; t < s.tokens_in(n); ++t) {
    const std::int64_t token = p * s.tokens + n * s.chunk + t;
    for (std::int64_t e = 0; e < s.token_events(); ++e) {
      const bool writes = e < s.writes;
      const std::int64_t i = writes ? token * s.writes + e : token * s.reads + e - s.writes;
      const std::int32_t row = writes ? c.k_idx[at(i)] : c.q_idx[at(i)];
      if (!c.is_row_of(p, row)) continue;
      auto& run = runs[row];
      const double before = run.empty() ? 0.0 : run.back().level;
      run.push_back({t, t * s.token_events() + e, writes, writes ? c.k_val[at(i)] : c.q_val[at(i)],
                     before + (writes ? c.decay(token, e) : 0.0)});
    }
  }
  return runs;
}

// What the kernels of a chunk are given beside the inputs. X: float or double.
template <class X>
struct chunk_tables {
  indices order, runs, rows, written;
  std::vector<X> head, tail, keep, pairs;
  std::vector<X> errors_inverse, deltas_inverse;  // of scaled columns, and of scaled rows

  explicit chunk_tables(const chunk_case& c) {
    const sdm_sizes& s = c.sizes;
    for (std::int64_t p = 0; p < s.streams; ++p) {
      for (std::int64_t n = 0; n < s.chunks(); ++n) add_chunk(c, p, n);
    }
  }

 private:
  void add_chunk(const chunk_case& c, std::int64_t p, std::int64_t n) {
    const sdm_sizes& s = c.sizes;
    const std::size_t first = order.size();
    for (auto* each : {&order, &rows, &written}) each->resize(first + at(s.events()), -1);
    for (auto* each : {&head, &tail, &keep}) each->resize(first + at(s.events()), X{0});
    const auto size = static_cast<std::size_t>(s.chunk);
    doubles recalls(size * size, 0.0);
    doubles readings(size * size, 0.0);
    std::int32_t position = 0;
    std::int32_t with_writes = 0;
    std::size_t r = first;
    for (const auto& [row, events] : runs_of(c, p, n)) {
      runs.push_back(position);
      rows[r] = row;
      const double end = events.back().level;
      keep[r] = static_cast<X>(std::exp(end));
      const bool has_write =
          std::any_of(events.begin(), events.end(), [](const auto& e) { return e.writes; });
      if (has_write) written[r] = with_writes++;
      ++r;
      for (const timed_event& later : events) {
        order[first + at(position++)] = static_cast<std::int32_t>(later.event);
        head[first + at(later.event)] = static_cast<X>(later.value * std::exp(later.level));
        if (later.writes) {
          tail[first + at(later.event)] = static_cast<X>(later.value * std::exp(end - later.level));
        }
        for (const timed_event& earlier : events) {
          if (!earlier.writes || earlier.event >= later.event) continue;
          if (later.writes && earlier.token == later.token) continue;
          (later.writes ? recalls : readings)[at(later.token) * size + at(earlier.token)] +=
              later.value * earlier.value * std::exp(later.level - earlier.level);
        }
      }
    }
    runs.resize((first / at(s.events()) + 1) * (at(s.events()) + 1), position);
    append(readings, pairs);
    const auto strength = [&](std::size_t t) {
      return static_cast<std::int64_t>(t) < s.tokens_in(n)
                 ? c.beta[at(p * s.tokens + n * s.chunk) + t]
                 : 0.0;
    };
    doubles columns = recalls;
    doubles scaled = recalls;
    for (std::size_t t = 0; t < size; ++t) {
      for (std::size_t j = 0; j < size; ++j) {
        columns[t * size + j] *= strength(j);
        scaled[t * size + j] *= strength(t);
      }
    }
    append(inverted(columns, size), errors_inverse);
    append(inverted(scaled, size), deltas_inverse);
  }

  // (I + m)^-1 of what is below the diagonal.
  static doubles inverted(const doubles& m, std::size_t size) {
    doubles inverse(size * size, 0.0);
    for (std::size_t j = 0; j < size; ++j) {
      inverse[j * size + j] = 1;
      for (std::size_t t = j + 1; t < size; ++t) {
        double sum = 0;
        for (std::size_t s = j; s < t; ++s) sum += m[t * size + s] * inverse[s * size + j];
        inverse[t * size + j] = -sum;
      }
    }
    return inverse;
  }

  static void append(const doubles& from, std::vector<X>& to) {
    for (const double one : from) to.push_back(static_cast<X>(one));
  }
};

}  // namespace reprise::test::sdm_chunk
