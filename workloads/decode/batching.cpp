#include "workloads/decode/batching.hpp"

#include <algorithm>
#include <utility>

#include "reprise/base/clock.hpp"

namespace reprise::decode {

batch_runner::batch_runner(stream_ref stream, const llama& model, replay_cache& steps,
                           batch_options options)
    : stream_{stream},
      model_{model},
      steps_{steps},
      options_{std::move(options)},
      prefill_{prefill_step(model, !options_.sampling.greedy)},
      decode_{decode_step(model, !options_.sampling.greedy)},
      results_{stream.device(), static_cast<std::size_t>(options_.sizes.back())} {
  const std::int64_t at_once = std::min(model_.cache.slots, options_.sizes.back());
  for (std::int64_t slot = at_once - 1; slot >= 0; --slot) {
    free_slots_.push_back(static_cast<std::int32_t>(slot));
  }
}

void batch_runner::run(std::vector<request>& requests, const token_listener& listen) {
  waiting_ = 0;
  while (waiting_ < requests.size() || !running_.empty()) {
    admit(requests, listen);
    if (!running_.empty()) decode(requests, listen);
  }
}

void batch_runner::admit(std::vector<request>& requests, const token_listener& listen) {
  while (waiting_ < requests.size() && !free_slots_.empty()) {
    const std::size_t index = waiting_++;
    request& asked = requests[index];
    const std::int32_t slot = free_slots_.back();
    prefill(asked, index, slot);
    listen(index, asked);
    if (asked.finish != finish_reason::running) continue;
    free_slots_.pop_back();
    running_.push_back({index, slot});
  }
}

void batch_runner::prefill(request& asked, std::size_t index, std::int32_t slot) {
  row_table rows;
  for (std::size_t i = 0; i < asked.prompt.size(); ++i) {
    add_row(rows, asked.prompt[i], static_cast<std::int32_t>(i), slot);
  }
  add_sampling(rows, &asked);
  rows_of_.assign(1, {index, 0, static_cast<std::int64_t>(asked.prompt.size()), 0, 0});
  if (options_.on_rows) options_.on_rows(rows_of_);
  const double start = now_us();
  step(prefill_, rows, 1);
  times_.prefill_us += now_us() - start;
  times_.prefill_tokens += asked.prompt.size();
  ++plan_.prefills;
  take(asked, results_[0]);
}

void batch_runner::decode(std::vector<request>& requests, const token_listener& listen) {
  const std::int64_t size = size_for(running_.size());
  row_table rows;
  rows_of_.clear();
  for (const running& r : running_) {
    const request& asked = requests[r.index];
    const std::size_t position = asked.prompt.size() + asked.generated.size() - 1;
    const auto row = static_cast<std::int64_t>(rows_of_.size());
    rows_of_.push_back({r.index, row, 1, row, static_cast<std::int64_t>(position)});
    add_row(rows, asked.generated.back(), static_cast<std::int32_t>(position), r.slot);
    add_sampling(rows, &asked);
  }
  // Padding is a little sequence of its own in the dummy slot: each row at another position, so
  // that no two write the same place and none reads what was never written.
  const auto dummy = static_cast<std::int32_t>(model_.cache.slots);
  for (std::int32_t p = 0; rows.tokens.size() < static_cast<std::size_t>(size); ++p) {
    add_row(rows, 0, p, dummy);
    add_sampling(rows, nullptr);
  }

  if (options_.on_rows) options_.on_rows(rows_of_);
  const double start = now_us();
  const outcome done = step(decode_, rows, rows.tokens.size());
  const double us = now_us() - start;
  ++plan_.decode_steps[size];
  if (options_.on_step) options_.on_step({size, done.how, us});
  if (done.how == ran::eager) {
    times_.eager_us += us;
    times_.eager_tokens += running_.size();
  } else if (done.how == ran::replayed) {
    times_.replayed_us += us;
    times_.replayed_tokens += running_.size();
  }

  std::vector<running> still;
  for (std::size_t row = 0; row < running_.size(); ++row) {
    const running r = running_[row];
    request& asked = requests[r.index];
    take(asked, results_[row]);
    listen(r.index, asked);
    if (asked.finish == finish_reason::running) {
      still.push_back(r);
    } else {
      free_slots_.push_back(r.slot);
    }
  }
  running_ = std::move(still);
}

void batch_runner::take(request& asked, std::int32_t token) {
  asked.generated.push_back(token);
  const auto total = static_cast<std::int64_t>(asked.prompt.size() + asked.generated.size());
  if (std::ranges::find(model_.config.end_tokens, token) != model_.config.end_tokens.end()) {
    asked.finish = finish_reason::stop;
  } else if (static_cast<std::int64_t>(asked.generated.size()) >= options_.max_tokens ||
             total > model_.config.context) {
    asked.finish = finish_reason::length;
  }
}

std::int64_t batch_runner::size_for(std::size_t rows) const {
  return *std::ranges::lower_bound(options_.sizes, static_cast<std::int64_t>(rows));
}

void batch_runner::add_row(row_table& rows, std::int32_t token, std::int32_t position,
                           std::int32_t slot) const {
  rows.tokens.push_back(token);
  rows.positions.push_back(position);
  rows.slots.push_back(slot);
}

// A draw is named by the seed, the repeat of the prompt and the position, so a request's text does
// not depend on its company. A padded row (null) takes the likeliest token and draws nothing.
void batch_runner::add_sampling(row_table& rows, const request* asked) const {
  const sampling_options& s = options_.sampling;
  if (s.greedy) return;
  rows.temperatures.push_back(asked != nullptr ? s.temperature : 0.0F);
  rows.top_ps.push_back(s.top_p);
  rows.seeds.push_back(s.seed);
  const std::uint64_t position =
      asked != nullptr ? asked->prompt.size() + asked->generated.size() : 0;
  const std::uint64_t repeat = asked != nullptr ? asked->repeat : 0;
  rows.counters.push_back(repeat << 32 | position);
}

// Runs one step and brings its tokens back; the host waits for them.
outcome batch_runner::step(const model_step& what, const row_table& rows, std::size_t results) {
  std::vector<binding> bound{what.tokens.from_host(rows.tokens),
                             what.positions.from_host(rows.positions),
                             what.slots.from_host(rows.slots)};
  if (what.sampling) {
    bound.push_back(what.sampling->temperatures.from_host(rows.temperatures));
    bound.push_back(what.sampling->top_ps.from_host(rows.top_ps));
    bound.push_back(what.sampling->seeds.from_host(rows.seeds));
    bound.push_back(what.sampling->counters.from_host(rows.counters));
  }
  const step_result done = steps_.run(stream_, what.body, std::span<const binding>{bound});
  copy(stream_, read{done[what.next].get()}, write{results_.all().subview(0, results)});
  stream_.synchronize();
  return done;
}

}  // namespace reprise::decode
