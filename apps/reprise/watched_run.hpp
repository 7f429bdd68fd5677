// `--watch`: a monitor for one run of a workload, where its records go, and what it took, counted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/reprise/metrics_server.hpp"
#include "apps/reprise/verb.hpp"
#include "reprise/tap/monitor.hpp"

namespace reprise::app {

// As they were typed.
struct watch_options {
  std::string points;
  std::optional<std::string> rows;
  std::optional<std::string> when_full;
  std::vector<std::string> out;
  std::optional<std::string> metrics;
  std::optional<std::int64_t> metrics_port;
  bool asked() const { return !points.empty(); }
};

void add_watch_options(verb_ref verb, watch_options& into);
// Throws usage_error, naming the option, for what can be refused before anything is opened.
void check_watch_options(const watch_options& typed);

class watched_run {
 public:
  // Opens no sink. Throws usage_error, naming the option, where a point is none of `known`, and
  // where this build lacks what a sink or the port needs.
  watched_run(device_ref device, const watch_options& typed, std::string_view workload,
              const std::vector<point>& known);
  ~watched_run();

  monitor& eye() { return eye_; }
  // As monitor::plan_step. The first call opens the sinks, so that a run which is refused for its
  // other input leaves no folder behind; throws usage_error, one line, where one cannot be used.
  void plan(std::span<const request_rows> rows);
  // When the run is over: every record is in every sink, or counted as lost, the sinks are closed
  // and the metrics are written.
  void finish();

  // Where metrics can be read now; 0: nowhere.
  int metrics_port() const { return server_ ? server_->port() : 0; }
  void print(std::FILE* to) const;
  nlohmann::json as_json() const;
  // One line where records were lost; dropping them is what was asked for.
  std::string failure() const;

 private:
  struct unopened_sink {
    std::string name;  // without a password
    std::unique_ptr<record_sink> sink;
  };
  // On the thread that drains, until that has ended.
  struct taken {
    std::uint64_t records = 0;
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    std::map<std::string, std::uint64_t> by_point;
    std::map<std::uint64_t, std::uint64_t> by_request;

    void add(const tap_record& one);
  };

  void write_metrics();

  watch_options typed_;
  std::vector<unopened_sink> unopened_;
  taken taken_;
  monitor_options how_;
  monitor eye_;
  std::optional<metrics_server> server_;  // reads the monitor
  tap_counts counts_;
  std::vector<named_sink_counts> sinks_;
  std::string failed_;  // of a sink, or of writing the metrics
};

}  // namespace reprise::app
