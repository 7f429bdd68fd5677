#include "apps/reprise/cache_json.hpp"

#include "reprise/replay/budget.hpp"

namespace reprise::app {

namespace {

nlohmann::json as_json(const recording_bytes& bytes) {
  return {{"total", bytes.total()},
          {"buffers", bytes.buffers},
          {"workspaces", bytes.workspaces},
          {"pinned", bytes.pinned},
          {"executables", bytes.executables}};
}

nlohmann::json as_json(const recording_row& row) {
  nlohmann::json breaks = nlohmann::json::array();
  for (const break_cost& one : row.breaks) {
    breaks.push_back({{"why", one.why}, {"runs", one.runs}, {"mean_us", one.mean_us}});
  }
  nlohmann::json staged = nlohmann::json::array();
  for (const staged_after_all& one : row.staged_inputs) {
    staged.push_back({{"input", one.input}, {"reader", one.reader}});
  }
  return {{"step", row.step},
          {"key", row.key},
          {"nodes", row.nodes},
          {"segments", row.segments},
          {"replays", row.replays},
          {"bytes", as_json(row.bytes)},
          {"ms",
           {{"warm_up", row.phases.warm_up},
            {"capture", row.phases.capture},
            {"instantiation", row.phases.instantiation},
            {"first_replay", row.phases.first_replay}}},
          {"breaks", breaks},
          {"staged_inputs", staged}};
}

nlohmann::json as_json(const missed_key& key) {
  nlohmann::json differs = nlohmann::json::array();
  for (const breach& part : key.differs) {
    differs.push_back({{"part", part.fact}, {"recorded", part.expected}, {"asked", part.actual}});
  }
  return {{"step", key.step}, {"uses", key.uses}, {"differs", differs}};
}

}  // namespace

nlohmann::json as_json(const step_counts& counts) {
  return {{"captured", counts.captured}, {"replayed", counts.replayed}, {"eager", counts.eager}};
}

nlohmann::json as_json(const cache_report& report) {
  nlohmann::json recordings = nlohmann::json::array();
  for (const recording_row& row : report.recordings) recordings.push_back(as_json(row));
  nlohmann::json missed = nlohmann::json::array();
  for (const missed_key& key : report.missed) missed.push_back(as_json(key));
  const bool bounded = report.budget != byte_budget::unlimited;
  return {{"recordings", recordings},
          {"missed", missed},
          {"summary", summary_of(report)},
          {"evicted", report.counts.evicted},
          {"prepared", report.counts.prepared},
          {"budget", bounded ? nlohmann::json(report.budget) : nlohmann::json{}},
          {"most_held", report.most_held}};
}

}  // namespace reprise::app
