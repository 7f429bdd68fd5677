#include "bench/grad/op_lives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/grad/subject.hpp"
#include "bench/measure/resident.hpp"
#include "reprise/device/memory_report.hpp"

namespace reprise::bench {

namespace {

constexpr layer_shape small{.inputs = 1, .rows = 1, .in = 64, .out = 64};
constexpr std::string_view named = "short-lived";

// Those whose names stand in the metrics.
std::size_t listed_ops() {
  std::istringstream text{grad_metrics()};
  const std::string begin = fmt::format("reprise_grad_calls_total{{op=\"{} ", named);
  std::size_t count = 0;
  for (std::string line; std::getline(text, line);) {
    if (line.starts_with(begin) && line.find("\"forward_capture\"") != line.npos) ++count;
  }
  return count;
}

list_lengths lengths_now(stream_ref stream, std::list<subject>& ops, const byte_budget& budget) {
  list_lengths now;
  now.listed_ops = listed_ops();
  for (subject& one : ops) now.frames += one.op().frames();
  for (const pool_figures& one : report_memory(stream.device()).pools) {
    const std::string_view label = one.label;
    if (label == "frames" || label == "a frame of its own" || label == "results of graphed ops") {
      ++now.pools;
    }
  }
  now.budget_bytes = budget.held();
  return now;
}

// The heap goes on growing for several generations, in which nothing stays.
held_bytes held_trimmed(stream_ref stream) {
  stream.synchronize();
  trim_heap();
  return held_now(stream);
}

// A forward of each and then a backward of each, as a network of so many layers has it.
void run_generation(pool& memory, stream_ref stream, byte_budget& budget, op_lives_report& report,
                    const progress& tell) {
  const auto count = static_cast<std::size_t>(report.ops);
  const std::size_t told_every = std::max<std::size_t>(1, count / 50);
  std::list<subject> ops;
  std::vector<forward_ticket> tickets;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % told_every == 0) tell("ops that live", i, 2 * count);
    subject& made = ops.emplace_back(fmt::format("{} {}", named, i), memory, stream, budget, small,
                                     graphed_options{}, static_cast<int>(i));
    tickets.push_back(made.forward().ticket);
  }
  for (std::size_t i = count; subject & one : ops) {
    if (i % told_every == 0) tell("ops that live", i, 2 * count);
    one.backward(tickets[i - count]);
    ++i;
  }
  report.captured_forwards = report.captured_backwards = 0;
  for (subject& one : ops) {
    report.captured_forwards += one.op().counts().forward_capture;
    report.captured_backwards += one.op().counts().backward_capture;
  }
  report.alive = lengths_now(stream, ops, budget);
}

}  // namespace

std::size_t op_lives_report::process_growth() const {
  return process_is_held ? grown(before.process, after.process) : 0;
}
std::size_t op_lives_report::device_growth() const {
  return device_is_apart ? grown(before.device, after.device) : 0;
}
std::size_t op_lives_report::own_growth() const {
  return grown(before.own, after.own);
}

std::string op_lives_report::failure() const {
  const auto all = static_cast<std::uint64_t>(ops);
  if (captured_forwards != all || captured_backwards != all) {
    return fmt::format(
        "{} ops captured {} forwards and {} backwards; each has to capture one, so mend that "
        "before reading the bytes",
        ops, captured_forwards, captured_backwards);
  }
  if (at_end.listed_ops + at_end.frames + at_end.pools + at_end.budget_bytes != 0) {
    return fmt::format(
        "of {} ops that were destroyed {} are listed, {} frames and {} pools are left, and {} "
        "bytes are charged; look for what keeps them",
        ops, at_end.listed_ops, at_end.frames, at_end.pools, at_end.budget_bytes);
  }
  const auto too_much = [&](std::string_view what, std::size_t bytes) {
    return fmt::format(
        "{} grew by {} bytes over {} ops that were destroyed, and may by {}; look for what an op "
        "leaves behind",
        what, bytes, ops, growth_limit);
  };
  if (process_growth() > growth_limit) return too_much("the process", process_growth());
  if (device_growth() > growth_limit) {
    return too_much("the device's memory in use", device_growth());
  }
  if (own_growth() > growth_limit) return too_much("what Reprise holds", own_growth());
  return {};
}

op_lives_report run_op_lives(pool& memory, stream_ref stream, int ops, const progress& tell) {
  op_lives_report report;
  report.ops = ops;
  report.device_is_apart = stream.device().bodies() == device_kind::cuda;
  report.process_is_held = !stream.device().name().starts_with("sim:");
  byte_budget budget{byte_budget::unlimited};
  run_generation(memory, stream, budget, report, tell);
  report.before = held_trimmed(stream);
  run_generation(memory, stream, budget, report, tell);
  report.after = held_trimmed(stream);
  std::list<subject> none;
  report.at_end = lengths_now(stream, none, budget);
  const auto count = static_cast<std::size_t>(ops);
  tell("ops that live", 2 * count, 2 * count);
  return report;
}

}  // namespace reprise::bench
