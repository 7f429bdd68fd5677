#include "tests/sdm/plain_memory.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace reprise::test {

namespace {

constexpr double nobody = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t columns_of_part = 256;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

std::vector<double> zeros(std::int64_t count) {
  return std::vector<double>(at(count));
}

// The row that an index names, or -1 where it is none of stream p's.
std::int64_t row_of(const sdm_sizes& s, std::int64_t p, std::int32_t index) {
  return index >= p * s.slots && index < (p + 1) * s.slots ? index : -1;
}

double decay(const memory_call& call, std::int64_t token, std::int64_t w) {
  const std::int64_t decays = call.sizes.decays;
  return call.g[at(token * decays + (decays == 1 ? 0 : w))];
}

double dot(const double* a, const double* b, std::int64_t begin, std::int64_t end) {
  double sum = 0;
  for (std::int64_t j = begin; j < end; ++j) sum += a[j] * b[j];
  return sum;
}

// Keeps the rows that are written as they were, [W, D].
void forward_token(const memory_call& call, std::int64_t p, std::int64_t token, memory_run& run,
                   std::vector<double>& kept) {
  kept.resize(at(call.sizes.writes * call.sizes.width));
  const sdm_sizes& s = call.sizes;
  std::vector<double>& bank = run.final_bank;
  for (std::int64_t j = 0; j < s.width; ++j) {
    double recalled = 0;
    for (std::int64_t w = 0; w < s.writes; ++w) {
      const std::int64_t row = row_of(s, p, call.k_idx[at(token * s.writes + w)]);
      if (row < 0) continue;
      recalled += call.k_val[at(token * s.writes + w)] * std::exp(decay(call, token, w)) *
                  bank[at(row * s.width + j)];
    }
    const double error = call.v[at(token * s.width + j)] - recalled;
    const double delta = call.beta[at(token)] * error;
    run.errors[at(token * s.width + j)] = error;
    run.deltas[at(token * s.width + j)] = delta;
    for (std::int64_t w = 0; w < s.writes; ++w) {
      const std::int64_t row = row_of(s, p, call.k_idx[at(token * s.writes + w)]);
      if (row < 0) continue;
      double& here = bank[at(row * s.width + j)];
      kept[at(w * s.width + j)] = here;
      here = std::exp(decay(call, token, w)) * here + call.k_val[at(token * s.writes + w)] * delta;
    }
    double reading = 0;
    for (std::int64_t n = 0; n < s.reads; ++n) {
      const std::int64_t row = row_of(s, p, call.q_idx[at(token * s.reads + n)]);
      if (row >= 0) reading += call.q_val[at(token * s.reads + n)] * bank[at(row * s.width + j)];
    }
    run.readings[at(token * s.width + j)] = reading;
  }
}

// The bank is that behind the token, and is then the one before it.
void backward_token(const memory_call& call, std::int64_t p, std::int64_t token,
                    const std::vector<double>& kept, std::vector<double>& bank, memory_run& run) {
  const sdm_sizes& s = call.sizes;
  std::vector<double>& cotangent = run.d_bank;
  const double* const dy = call.dy.data() + token * s.width;
  for (std::int64_t n = 0; n < s.reads; ++n) {
    const std::int64_t row = row_of(s, p, call.q_idx[at(token * s.reads + n)]);
    if (row < 0) continue;
    run.dq[at(token * s.reads + n)] = dot(dy, bank.data() + row * s.width, 0, s.width);
    for (std::int64_t j = 0; j < s.width; ++j) {
      cotangent[at(row * s.width + j)] += call.q_val[at(token * s.reads + n)] * dy[j];
    }
  }
  double* const m = run.m.data() + token * s.width;
  for (std::int64_t w = 0; w < s.writes; ++w) {
    const std::int64_t row = row_of(s, p, call.k_idx[at(token * s.writes + w)]);
    if (row < 0) continue;
    for (std::int64_t j = 0; j < s.width; ++j) {
      m[j] += call.k_val[at(token * s.writes + w)] * cotangent[at(row * s.width + j)];
    }
  }
  const double* const error = run.errors.data() + token * s.width;
  run.dbeta[at(token)] = dot(m, error, 0, s.width);
  double* const dv = run.dv.data() + token * s.width;
  for (std::int64_t j = 0; j < s.width; ++j) dv[j] = call.beta[at(token)] * m[j];
  for (std::int64_t w = 0; w < s.writes; ++w) {
    const std::int64_t write = token * s.writes + w;
    const std::int64_t row = row_of(s, p, call.k_idx[at(write)]);
    if (row < 0) continue;
    const double a = std::exp(decay(call, token, w));
    const double* const state = kept.data() + w * s.width;
    double* const h = cotangent.data() + row * s.width;
    run.dk[at(write)] =
        dot(h, run.deltas.data() + token * s.width, 0, s.width) - a * dot(dv, state, 0, s.width);
    for (std::int64_t j = 0; j < s.width; ++j) h[j] = a * (h[j] - call.k_val[at(write)] * dv[j]);
    run.dg_by_write[at(write)] = dot(h, state, 0, s.width);
    std::copy(state, state + s.width, bank.begin() + row * s.width);
  }
}

// An event of a chunk that takes part: sizes.hpp says how they are numbered.
struct event {
  std::int32_t number;
  std::int64_t row, token, value;  // the token of its chunk; its value among k_val or q_val
  bool writes;
};

std::vector<event> events_of(const memory_call& call, std::int64_t p, std::int64_t n) {
  const sdm_sizes& s = call.sizes;
  std::vector<event> found;
  for (std::int64_t t = 0; t < s.tokens_in(n); ++t) {
    const std::int64_t token = p * s.tokens + n * s.chunk + t;
    for (std::int64_t i = 0; i < s.token_events(); ++i) {
      const bool writes = i < s.writes;
      const std::int64_t value = writes ? token * s.writes + i : token * s.reads + i - s.writes;
      const std::int64_t row = row_of(s, p, (writes ? call.k_idx : call.q_idx)[at(value)]);
      if (row < 0) continue;
      found.push_back({static_cast<std::int32_t>(t * s.token_events() + i), row, t, value, writes});
    }
  }
  std::ranges::stable_sort(found, {}, &event::row);
  return found;
}

void put_parts(std::vector<double>& to, std::int64_t which, const double* a, const double* b,
               std::int64_t width) {
  const std::int64_t parts = (width + columns_of_part - 1) / columns_of_part;
  for (std::int64_t i = 0; i < parts; ++i) {
    to[at(which * parts + i)] =
        dot(a, b, i * columns_of_part, std::min(width, (i + 1) * columns_of_part));
  }
}

// Of chunk n of stream p.
void fill_tables(const memory_call& call, const memory_run& run, std::int64_t p, std::int64_t n,
                 event_tables& to) {
  const sdm_sizes& s = call.sizes;
  const std::int64_t chunk = s.chunk_of(p, n);
  const std::int64_t first = chunk * s.events();
  const std::int64_t first_token = p * s.tokens + n * s.chunk;
  const std::vector<event> events = events_of(call, p, n);
  std::int64_t runs = 0;
  double level = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const event& e = events[i];
    const double* const state = run.bank_before[at(n)].data() + e.row * s.width;
    const double* const behind = run.cotangent_behind[at(n)].data() + e.row * s.width;
    if (i == 0 || events[i - 1].row != e.row) {
      level = 0;
      to.runs[at(chunk * (s.events() + 1) + runs)] = static_cast<std::int32_t>(i);
      put_parts(to.of_both, first + runs, behind, state, s.width);
      ++runs;
    }
    const std::int64_t token = first_token + e.token;
    if (e.writes) level += decay(call, token, e.number % s.token_events());
    to.order[at(first) + i] = e.number;
    to.place[at(first + e.number)] = static_cast<std::int32_t>(i);
    to.level[at(first + e.number)] = level;
    put_parts(to.of_state, first + e.number, state,
              (e.writes ? run.dv : call.dy).data() + token * s.width, s.width);
    put_parts(to.of_cotangent, first + e.number, behind, run.deltas.data() + token * s.width,
              e.writes ? s.width : 0);
  }
  for (std::int64_t r = runs; r <= s.events(); ++r) {
    to.runs[at(chunk * (s.events() + 1) + r)] = static_cast<std::int32_t>(events.size());
  }
  for (std::int64_t t = 0; t < s.tokens_in(n); ++t) {
    for (std::int64_t u = 0; u <= t; ++u) {
      const std::size_t pair = at((chunk * s.chunk + t) * s.chunk + u);
      const double* const delta = run.deltas.data() + (first_token + u) * s.width;
      to.of_readings[pair] = dot(call.dy.data() + (first_token + t) * s.width, delta, 0, s.width);
      if (u == t) continue;
      to.of_errors[pair] = dot(run.dv.data() + (first_token + t) * s.width, delta, 0, s.width);
    }
  }
}

// One run of one chunk, with M before its events and G behind them.
struct defined_run {
  const memory_call& call;
  const event_tables& tables;
  std::int64_t chunk, run;
  std::vector<event> events;

  static constexpr std::size_t state = ~std::size_t{0};
  std::size_t end() const { return events.size(); }

  double whole(const std::vector<double>& parts, std::int64_t which) const {
    const std::int64_t count = (call.sizes.width + columns_of_part - 1) / columns_of_part;
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += parts[at(which * count + i)];
    return sum;
  }
  double level(std::size_t x) const {
    if (x == state) return 0;
    const event& e = events[std::min(x, events.size() - 1)];
    return tables.level[at(chunk * call.sizes.events() + e.number)];
  }
  double as_earlier(std::size_t y) const {
    return y == state ? 1 : call.k_val[at(events[y].value)];
  }
  double as_later(std::size_t x) const {
    if (x == end()) return 1;
    const event& e = events[x];
    return e.writes ? -call.k_val[at(e.value)] : call.q_val[at(e.value)];
  }
  double product(std::size_t x, std::size_t y) const {
    const std::int64_t first = chunk * call.sizes.events();
    if (x == end() && y == state) return whole(tables.of_both, first + run);
    if (x == end()) return whole(tables.of_cotangent, first + events[y].number);
    if (y == state) return whole(tables.of_state, first + events[x].number);
    const std::int64_t row = chunk * call.sizes.chunk + events[x].token;
    return (events[x].writes ? tables.of_errors
                             : tables.of_readings)[at(row * call.sizes.chunk + events[y].token)];
  }
  double before(std::size_t x, std::size_t p) const {
    double sum = std::exp(level(x)) * product(x, state);
    for (std::size_t y = 0; y < p; ++y) {
      if (!events[y].writes) continue;
      sum += as_earlier(y) * std::exp(level(x) - level(y)) * product(x, y);
    }
    return sum;
  }

  void put(event_gradients& to) const {
    for (std::size_t p = 0; p < events.size(); ++p) {
      const auto value = at(events[p].value);
      if (!events[p].writes) {
        to.dq[value] = before(p, p);
        continue;
      }
      double after = 0;
      for (std::size_t x = p + 1; x <= end(); ++x) {
        after += as_later(x) * std::exp(level(x) - level(p)) * product(x, p);
      }
      to.dk[value] = after - before(p, p);
      to.dg_by_write[value] = 0;
      for (std::size_t x = p; x <= end(); ++x) {
        to.dg_by_write[value] += as_later(x) * before(x, p);
      }
    }
  }
};

}  // namespace

memory_call random_call(const sdm_sizes& s, const call_options& options) {
  std::mt19937_64 draw{options.seed};
  const auto between = [&](double low, double high) {
    const double unit = static_cast<double>(draw() >> 40) * 0x1p-24;
    return static_cast<double>(static_cast<float>(low + unit * (high - low)));
  };
  const auto values = [&](std::int64_t count, double low, double high) {
    std::vector<double> drawn(at(count));
    for (double& one : drawn) one = between(low, high);
    return drawn;
  };
  const auto indices = [&](std::int64_t each) {
    std::vector<std::int32_t> all;
    std::vector<std::int32_t> slots(at(s.slots));
    for (std::int64_t token = 0; token < s.streams * s.tokens; ++token) {
      const std::int64_t p = token / s.tokens;
      std::iota(slots.begin(), slots.end(), static_cast<std::int32_t>(p * s.slots));
      for (std::int64_t i = 0; i < each; ++i) {
        std::swap(slots[at(i)], slots[at(i) + draw() % at(s.slots - i)]);
      }
      std::sort(slots.begin(), slots.begin() + each);
      all.insert(all.end(), slots.begin(), slots.begin() + each);
      if (!options.some_left_out) continue;
      if (draw() % 3 == 0) all[all.size() - at(each)] = static_cast<std::int32_t>(p * s.slots) - 1;
      if (draw() % 3 == 0) all.back() = static_cast<std::int32_t>((p + 1) * s.slots);
    }
    return all;
  };
  const std::int64_t tokens = s.streams * s.tokens;
  memory_call made;
  made.sizes = s;
  made.k_idx = indices(s.writes);
  made.q_idx = indices(s.reads);
  made.bank = values(s.rows() * s.width, -1, 1);
  made.k_val = values(tokens * s.writes, 0, 2.0 / static_cast<double>(s.writes));
  made.v = values(tokens * s.width, -1, 1);
  made.beta = values(tokens, 0.1, 0.9);
  made.g = values(tokens * s.decays, options.strongest_decay, 0);
  made.q_val = values(tokens * s.reads, -1, 1);
  made.dy = values(tokens * s.width, -1, 1);
  made.d_final = values(s.rows() * s.width, -1, 1);
  return made;
}

memory_run in_doubles(const memory_call& call) {
  const sdm_sizes& s = call.sizes;
  const std::int64_t tokens = s.streams * s.tokens;
  memory_run run;
  run.readings = run.errors = run.deltas = run.m = run.dv = zeros(tokens * s.width);
  run.dk = run.dg_by_write = zeros(tokens * s.writes);
  run.dq = zeros(tokens * s.reads);
  run.dbeta = zeros(tokens);
  run.final_bank = call.bank;
  std::vector<std::vector<double>> kept(at(tokens));
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    if (t % s.chunk == 0) run.bank_before.push_back(run.final_bank);
    for (std::int64_t p = 0; p < s.streams; ++p) {
      const std::int64_t token = p * s.tokens + t;
      forward_token(call, p, token, run, kept[at(token)]);
    }
  }
  std::vector<double> bank = run.final_bank;
  run.d_bank = call.d_final;
  for (std::int64_t t = s.tokens - 1; t >= 0; --t) {
    if (t == s.tokens - 1 || t % s.chunk == s.chunk - 1) {
      run.cotangent_behind.insert(run.cotangent_behind.begin(), run.d_bank);
    }
    for (std::int64_t p = 0; p < s.streams; ++p) {
      const std::int64_t token = p * s.tokens + t;
      backward_token(call, p, token, kept[at(token)], bank, run);
    }
  }
  return run;
}

double loss_of(const memory_call& call) {
  const memory_run run = in_doubles(call);
  return dot(call.dy.data(), run.readings.data(), 0, static_cast<std::int64_t>(call.dy.size())) +
         dot(call.d_final.data(), run.final_bank.data(), 0,
             static_cast<std::int64_t>(call.d_final.size()));
}

event_tables tables_of(const memory_call& call, const memory_run& run) {
  const sdm_sizes& s = call.sizes;
  const std::int64_t chunks = s.streams * s.chunks();
  const std::int64_t events = chunks * s.events();
  const std::int64_t parts = (s.width + columns_of_part - 1) / columns_of_part;
  event_tables made;
  made.order.assign(at(events), -1);
  made.place.assign(at(events), -1);
  made.runs.resize(at(events + chunks));
  made.level = zeros(events);
  made.of_state.assign(at(events * parts), nobody);
  made.of_cotangent = made.of_both = made.of_state;
  made.of_readings = made.of_errors = zeros(chunks * s.chunk * s.chunk);
  for (std::int64_t p = 0; p < s.streams; ++p) {
    for (std::int64_t n = 0; n < s.chunks(); ++n) fill_tables(call, run, p, n, made);
  }
  return made;
}

event_gradients by_definition(const memory_call& call, const event_tables& tables) {
  const sdm_sizes& s = call.sizes;
  event_gradients made{zeros(s.streams * s.tokens * s.writes),
                       zeros(s.streams * s.tokens * s.reads),
                       zeros(s.streams * s.tokens * s.writes)};
  for (std::int64_t chunk = 0; chunk < s.streams * s.chunks(); ++chunk) {
    const std::vector<event> events = events_of(call, chunk / s.chunks(), chunk % s.chunks());
    std::int64_t run = 0;
    for (auto first = events.begin(); first != events.end(); ++run) {
      const auto last =
          std::find_if(first, events.end(), [&](const event& e) { return e.row != first->row; });
      defined_run{call, tables, chunk, run, {first, last}}.put(made);
      first = last;
    }
  }
  return made;
}

}  // namespace reprise::test
