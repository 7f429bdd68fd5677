// `--watch`: a monitor for one run of a workload, and what it took, counted.
#pragma once

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/reprise/verb.hpp"
#include "reprise/tap/monitor.hpp"

namespace reprise::app {

// As they were typed.
struct watch_options {
  std::string points;
  std::string rows = "last";
  std::string when_full = "wait";
  std::string metrics;
  bool asked() const { return !points.empty(); }
};

void add_watch_options(verb_ref verb, watch_options& into);

class watched_run {
 public:
  // Throws usage_error, naming the option, where a point is none of `known` or a word is not taken.
  watched_run(device_ref device, const watch_options& typed, const std::vector<point>& known);
  ~watched_run();

  monitor& eye() { return eye_; }
  // When the run is over: every record is counted, and the metrics are written.
  void finish();

  void print(std::FILE* to) const;
  nlohmann::json as_json() const;
  // One line where records were lost; dropping them is what was asked for.
  std::string failure() const;

  struct taken {
    std::uint64_t records = 0;
    std::uint64_t rows = 0;
    std::uint64_t bytes = 0;
    std::map<std::string, std::uint64_t> by_point;
    std::map<std::uint64_t, std::uint64_t> by_request;
  };

 private:
  static monitor_options options_of(const watch_options& typed);

  watch_options typed_;
  std::shared_ptr<taken> taken_;
  monitor eye_;
  tap_counts counts_;
};

}  // namespace reprise::app
