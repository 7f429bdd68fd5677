#include "bench/grad/grad_bench.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bench/measure/silence.hpp"
#include "bench/replay/bare_chain.hpp"
#include "reprise/base/error.hpp"

namespace reprise::bench {

namespace {

constexpr int most_rounds = 1'000'000;
constexpr int most_ops = 100'000;

void require(const grad_bench_options& options) {
  const auto fits = [](int n) { return n >= 2 && n <= most_ops; };
  if (options.frames.empty() || !std::ranges::all_of(options.frames, fits)) {
    throw usage_error{
        fmt::format("--frames must be whole numbers from 2 to {}, such as 10,1000", most_ops)};
  }
  const auto in_range = [](const char* name, int value, int most) {
    if (value >= 1 && value <= most) return;
    throw usage_error{fmt::format("{} must be a whole number from 1 to {}", name, most)};
  };
  in_range("--rounds", options.rounds, most_rounds);
  in_range("--ops", options.ops, most_ops);
  in_range("--steps", options.steps, most_rounds);
}

}  // namespace

std::vector<const grad_figure*> grad_bench_report::figures() const {
  std::vector<const grad_figure*> all;
  for (const grad_figure& one : calls.figures) all.push_back(&one);
  for (const pool_row& one : pools.rows) all.push_back(&one.forward);
  for (const pool_row& one : pools.rows) all.push_back(&one.forward_behind_all);
  for (const pool_row& one : pools.rows) all.push_back(&one.voided_backward);
  return all;
}

std::vector<const op_counts*> grad_bench_report::ops() const {
  std::vector<const op_counts*> all;
  for (const op_counts& one : calls.ops) all.push_back(&one);
  for (const pool_row& one : pools.rows) all.insert(all.end(), {&one.first, &one.last});
  for (const net_row& one : nets.rows) all.push_back(&one.layers);
  return all;
}

std::string grad_bench_report::failure() const {
  std::vector<const grad_figure*> all = figures();
  for (const net_row& one : nets.rows) all.push_back(&one.host);
  for (const op_counts* one : ops()) {
    if (std::string found = one->failure(); !found.empty()) return found;
  }
  for (const grad_figure* one : all) {
    if (std::string found = one->failure(); !found.empty()) return found;
  }
  return lives.failure();
}

grad_bench_report run_grad_bench(device_ref device, const call_counts& counts,
                                 const grad_bench_options& options, const progress& tell) {
  require(options);
  const silence eager_runs_are_planned;
  stream work{device};
  pool memory{device, "bench grad"};
  void* const native = native_stream_of(work);
  const call_timer timer{work, counts};

  grad_bench_report report;
  report.bare = native != nullptr;
  report.calls = measure_calls(memory, timer, native, options.rounds, tell);
  report.pools = measure_pools(memory, device, counts, {options.frames, options.rounds}, tell);
  report.lives = run_op_lives(memory, work, options.ops, tell);
  report.nets = measure_nets(memory, timer, native, options.steps, tell);
  return report;
}

}  // namespace reprise::bench
