#include "tests/sdm/support.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <random>
#include <set>

namespace reprise::test {

namespace {

using draw = std::mt19937_64;

std::int64_t below(draw& from, std::int64_t end) {
  return static_cast<std::int64_t>(from() % static_cast<std::uint64_t>(end));
}

// In [0, 1), with few enough bits for an f32.
double unit(draw& from) {
  return static_cast<double>(from() >> 44) * 0x1p-20;
}

// The rows that one token names.
std::vector<std::int32_t> token_rows(draw& from, const sdm_sizes& sizes, const sdm_habits& habits,
                                     std::int64_t p, std::int64_t count) {
  const std::int64_t hot = std::min(sizes.slots, sizes.token_events());
  std::set<std::int64_t> slots;
  while (static_cast<std::int64_t>(slots.size()) < count) {
    slots.insert(unit(from) < habits.hot ? below(from, hot) : below(from, sizes.slots));
    // Where all hot ones are taken, any will do.
    if (unit(from) < 0.1) slots.insert(below(from, sizes.slots));
  }
  std::vector<std::int32_t> rows;
  for (const std::int64_t slot : slots) {
    rows.push_back(static_cast<std::int32_t>(p * sizes.slots + slot));
  }
  rows.resize(static_cast<std::size_t>(count));
  if (habits.doubled && count > 1 && unit(from) < 0.5) rows[1] = rows[0];
  if (habits.strays) {
    constexpr auto least = std::numeric_limits<std::int32_t>::min();
    constexpr auto most = std::numeric_limits<std::int32_t>::max();
    const auto first = static_cast<std::int32_t>(p * sizes.slots);
    const std::int32_t strays[] = {least, -1, first - 1,
                                   static_cast<std::int32_t>(first + sizes.slots), most};
    for (std::int32_t& row : rows) {
      if (unit(from) < 0.3) row = strays[below(from, 5)];
    }
  }
  return rows;
}

std::vector<double> values(draw& from, std::int64_t count, double low, double high) {
  std::vector<double> out(static_cast<std::size_t>(count));
  for (double& one : out) one = static_cast<float>(low + (high - low) * unit(from));
  return out;
}

}  // namespace

sdm_case random_case(const std::string& name, const sdm_sizes& sizes, const sdm_habits& habits) {
  sdm_case made{name, sizes, {}, {}, {}, {}, {}, {}};
  draw from{habits.seed};
  for (std::int64_t p = 0; p < sizes.streams; ++p) {
    for (std::int64_t t = 0; t < sizes.tokens; ++t) {
      std::ranges::copy(token_rows(from, sizes, habits, p, sizes.writes),
                        std::back_inserter(made.k_idx));
      std::ranges::copy(token_rows(from, sizes, habits, p, sizes.reads),
                        std::back_inserter(made.q_idx));
    }
  }
  const std::int64_t tokens = sizes.streams * sizes.tokens;
  made.k_val = values(from, tokens * sizes.writes, -1.0, 1.0);
  made.q_val = values(from, tokens * sizes.reads, -1.0, 1.0);
  made.g = values(from, tokens * sizes.decays, -habits.decay, 0.0);
  made.beta = values(from, tokens, 0.0, 1.0);
  return made;
}

std::vector<sdm_case> small_cases() {
  // streams, slots, width, tokens, writes, reads, decays, chunk
  const sdm_sizes plain{2, 23, 4, 37, 3, 5, 3, 8};
  std::vector<sdm_case> all;
  const auto add = [&](const char* name, const sdm_sizes& sizes, const sdm_habits& habits) {
    all.push_back(random_case(name, sizes, habits));
  };
  add("a short last chunk", plain, {});
  add("whole chunks", {3, 40, 4, 32, 4, 2, 1, 16}, {.seed = 2});
  add("a chunk that no token fills", {2, 11, 4, 5, 2, 2, 1, 32}, {.seed = 3});
  add("chunks of one token", {1, 9, 4, 6, 4, 3, 4, 1}, {.seed = 4});
  add("one slot", {2, 1, 4, 70, 1, 1, 1, 65}, {.seed = 5});
  add("every slot each time", {1, 6, 4, 40, 6, 6, 6, 40}, {.seed = 6});
  add("over a warp of writes", {1, 90, 4, 21, 40, 70, 40, 10}, {.seed = 7});
  add("indices that are none", plain, {.strays = true, .seed = 8});
  add("indices named twice", plain, {.doubled = true, .seed = 9});
  add("both", {2, 5, 4, 30, 3, 3, 1, 30}, {.strays = true, .doubled = true, .seed = 10});
  add("strong decay", plain, {.hot = 0.9, .decay = 60.0, .seed = 11});
  return all;
}

std::vector<sdm_case> large_cases() {
  return {
      random_case("8,192 events", {2, 1000, 4, 600, 16, 16, 1, 256}, {.seed = 20}),
      random_case("16,384 events", {1, 5000, 4, 1100, 9, 7, 9, 1024}, {.strays = true, .seed = 21}),
      random_case("many slots", {3, 700'000, 4, 300, 8, 8, 1, 128}, {.strays = true, .seed = 22}),
      random_case("many slots and events", {2, 400'000, 4, 2000, 4, 4, 4, 2048}, {.seed = 23}),
      random_case("one slot", {2, 1, 4, 9000, 1, 1, 1, 8192}, {.seed = 24}),
      random_case("an odd number of events", {4, 300, 4, 500, 5, 8, 1, 77},
                  {.doubled = true, .seed = 25}),
      random_case("chunks of 257", {1, 2000, 4, 600, 6, 6, 6, 257}, {.seed = 26}),
  };
}

std::vector<plain_event> plain_events(const sdm_case& of, std::int64_t p, std::int64_t n) {
  const sdm_sizes& s = of.sizes;
  std::vector<plain_event> events(static_cast<std::size_t>(s.events()));
  const std::int64_t last = std::min(s.tokens, (n + 1) * s.chunk);
  std::size_t at = 0;
  // Of each row, the sum of the decays of its writes so far.
  std::map<std::int64_t, double> sums;
  for (std::int64_t t = n * s.chunk; t < last; ++t) {
    const std::int64_t token = p * s.tokens + t;
    for (std::int64_t w = 0; w < s.writes + s.reads; ++w) {
      plain_event& one = events[at++];
      one.token = t - n * s.chunk;
      one.is_write = w < s.writes;
      const auto from = static_cast<std::size_t>(one.is_write ? token * s.writes + w
                                                              : token * s.reads + w - s.writes);
      const std::int64_t row = one.is_write ? of.k_idx[from] : of.q_idx[from];
      if (row < p * s.slots || row >= (p + 1) * s.slots) continue;
      one.row = row;
      one.weight = one.is_write ? of.k_val[from] : of.q_val[from];
      if (one.is_write) sums[row] += of.g[s.decays == 1 ? static_cast<std::size_t>(token) : from];
      one.level = sums[row];
    }
  }
  return events;
}

chunk_orders plain_order(const sdm_case& of) {
  chunk_orders out;
  each_chunk(of.sizes, [&](std::int64_t p, std::int64_t n) {
    const auto events = plain_events(of, p, n);
    std::map<std::int64_t, std::vector<std::int32_t>> by_row;
    for (std::size_t e = 0; e < events.size(); ++e) {
      if (events[e].row >= 0) by_row[events[e].row].push_back(static_cast<std::int32_t>(e));
    }
    const std::size_t size = events.size();
    std::vector<std::int32_t> order, runs, rows, written;
    std::vector<std::int32_t> place(size, -1);
    std::vector<std::int32_t> run_of(size, -1);
    std::int32_t saved = 0;
    for (const auto& [row, those] : by_row) {
      bool is_written = false;
      runs.push_back(static_cast<std::int32_t>(order.size()));
      for (const std::int32_t e : those) {
        const auto event = static_cast<std::size_t>(e);
        place[event] = static_cast<std::int32_t>(order.size());
        run_of[event] = static_cast<std::int32_t>(rows.size());
        order.push_back(e);
        is_written = is_written || events[event].is_write;
      }
      rows.push_back(static_cast<std::int32_t>(row));
      written.push_back(is_written ? saved++ : -1);
    }
    runs.resize(size + 1, static_cast<std::int32_t>(order.size()));
    order.resize(size, -1);
    rows.resize(size, -1);
    written.resize(size, -1);
    const auto append = [](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    append(out.order, order);
    append(out.place, place);
    append(out.run_of, run_of);
    append(out.runs, runs);
    append(out.rows, rows);
    append(out.written, written);
  });
  return out;
}

std::vector<double> plain_levels(const sdm_case& of) {
  std::vector<double> out;
  each_chunk(of.sizes, [&](std::int64_t p, std::int64_t n) {
    for (const plain_event& one : plain_events(of, p, n)) out.push_back(one.level);
  });
  return out;
}

}  // namespace reprise::test
