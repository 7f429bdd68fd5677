#include "reprise/replay/cache_report.hpp"

#include <fmt/format.h>

#include "reprise/replay/budget.hpp"

namespace reprise {

namespace {

std::string kib(std::size_t bytes) {
  return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

std::string differences(const std::vector<breach>& parts) {
  if (parts.empty()) return "no other recording of its step";
  std::string text;
  for (const breach& part : parts) {
    text += fmt::format("{}{}: {}, recorded {}", text.empty() ? "" : "; ", part.fact, part.actual,
                        part.expected);
  }
  return text;
}

std::string line_of(const recording_row& row) {
  std::string line = fmt::format(
      "  {} [{}]: {} replays, {} nodes, {} ({} buffers, {} workspaces, {} pinned, {} executables); "
      "warm-up {:.2f} ms, capture {:.2f}, instantiation {:.2f}, first replay {:.2f}\n",
      row.step, row.key, row.replays, row.nodes, kib(row.bytes.total()), kib(row.bytes.buffers),
      kib(row.bytes.workspaces), kib(row.bytes.pinned), kib(row.bytes.executables),
      row.phases.warm_up, row.phases.capture, row.phases.instantiation, row.phases.first_replay);
  for (const break_cost& one : row.breaks) {
    line +=
        fmt::format("    break '{}': {} runs, {:.1f} us each\n", one.why, one.runs, one.mean_us);
  }
  for (const staged_after_all& one : row.staged_inputs) {
    line += fmt::format("    input '{}' is staged, since {} reads it\n", one.input, one.reader);
  }
  return line;
}

}  // namespace

std::string text_of(const cache_report& report) {
  std::string text =
      fmt::format("{} recordings, {}{}; {} for eager runs\n", report.recordings.size(),
                  kib(report.bytes.recordings),
                  report.budget == byte_budget::unlimited ? "" : " of " + kib(report.budget),
                  kib(report.bytes.eager));
  for (const recording_row& row : report.recordings) text += line_of(row);
  const step_counts& counts = report.counts;
  text +=
      fmt::format("{} captured, {} replayed, {} eager, {} prepared, {} evicted\n", counts.captured,
                  counts.replayed, counts.eager, counts.prepared, counts.evicted);
  for (const auto& [rule, count] : counts.eager_reasons) {
    text += fmt::format("  eager, {}: {}\n", rule, count);
  }
  for (const missed_key& key : report.missed) {
    text += fmt::format("  missed {} of {}: {}\n", key.uses, key.step, differences(key.differs));
  }
  for (const std::string& line : summary_of(report)) text += line + "\n";
  return text;
}

std::vector<std::string> summary_of(const cache_report& report) {
  const step_counts& counts = report.counts;
  std::vector<std::string> lines;
  if (counts.missed != 0) {
    lines.push_back(
        fmt::format("misses: {} runs found no recording of their key, {} of them were "
                    "recorded",
                    counts.missed, counts.captured));
  }
  if (counts.refused != 0) {
    lines.push_back(fmt::format("budget: {} captures were refused; {} of {} are held, at most {}",
                                counts.refused, kib(report.bytes.recordings), kib(report.budget),
                                kib(report.most_held)));
  }
  if (counts.thrashed != 0) {
    lines.push_back(
        fmt::format("thrash: {} runs stayed eager because recordings of their key were "
                    "dropped before they paid",
                    counts.thrashed));
  }
  return lines;
}

}  // namespace reprise
