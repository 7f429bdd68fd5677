#include "apps/reprise/watched_run.hpp"

#include <fmt/format.h>

#include <fstream>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise::app {

namespace {

class counting_sink final : public record_sink {
 public:
  explicit counting_sink(std::shared_ptr<watched_run::taken> into) : into_{std::move(into)} {}

  void open(std::string_view) override {}
  void write(std::span<const tap_record> records) override {
    for (const tap_record& one : records) {
      ++into_->records;
      into_->rows += static_cast<std::uint64_t>(one.rows);
      into_->bytes += one.bytes.size();
      ++into_->by_point[fmt::format("{}:{}", one.kind, one.layer)];
      ++into_->by_request[one.request];
    }
  }
  void flush() override {}
  void close() override {}

 private:
  std::shared_ptr<watched_run::taken> into_;
};

row_mode mode_of(const watch_options& typed) {
  if (typed.rows == "last") return row_mode::last();
  if (typed.rows == "all") return row_mode::real();
  throw usage_error{fmt::format("--rows {}: give all or last", typed.rows)};
}

}  // namespace

void add_watch_options(verb_ref verb, watch_options& into) {
  verb.add_option("--watch", into.points, "points to take records of, such as resid_pre:0-3+7")
      .option_text("SET");
  verb.add_option("--rows", into.rows, "of each request: all or last [last]").option_text("WHICH");
  verb.add_option("--when-full", into.when_full, "wait or drop [wait]").option_text("HOW");
  verb.add_option("--metrics", into.metrics, "where to write counts of taps, as Prometheus text")
      .option_text("FILE");
}

monitor_options watched_run::options_of(const watch_options& typed) {
  if (typed.when_full != "wait" && typed.when_full != "drop") {
    throw usage_error{fmt::format("--when-full {}: give wait or drop", typed.when_full)};
  }
  monitor_options how;
  how.drop_when_full = typed.when_full == "drop";
  return how;
}

watched_run::watched_run(device_ref device, const watch_options& typed,
                         const std::vector<point>& known)
    : typed_{typed}, taken_{std::make_shared<taken>()}, eye_{device, options_of(typed)} {
  const point_set set{typed.points};
  if (const std::string none = set.unmatched(known); !none.empty()) {
    throw usage_error{fmt::format("--watch {}: '{}' is no point of this model; it marks {}:0-{}",
                                  typed.points, none, known.front().kind, known.back().layer)};
  }
  eye_.watch({set, mode_of(typed)});
  eye_.send_to(std::make_unique<counting_sink>(taken_));
}

watched_run::~watched_run() = default;

void watched_run::finish() {
  eye_.flush();
  counts_ = eye_.counts();
  if (typed_.metrics.empty()) return;
  std::ofstream out{typed_.metrics};
  out << eye_.metrics();
  out.close();
  if (!out) {
    throw usage_error{fmt::format("--metrics {}: the file cannot be written; give another place",
                                  typed_.metrics)};
  }
}

void watched_run::print(std::FILE* to) const {
  fmt::print(to, "  taps        {} records of {} points, {} rows, {} bytes; {} lost, {} dropped\n",
             taken_->records, taken_->by_point.size(), taken_->rows, taken_->bytes, counts_.lost,
             counts_.dropped);
}

nlohmann::json watched_run::as_json() const {
  nlohmann::json requests = nlohmann::json::object();
  for (const auto& [request, records] : taken_->by_request) {
    requests[std::to_string(request)] = records;
  }
  return {{"watch", typed_.points},
          {"rows_mode", typed_.rows},
          {"records", taken_->records},
          {"rows", taken_->rows},
          {"bytes", taken_->bytes},
          {"points", taken_->by_point},
          {"requests", requests},
          {"published", counts_.published},
          {"lost", counts_.lost},
          {"dropped", counts_.dropped},
          {"reserve_waits", counts_.reserve_waits},
          {"drain_copies", counts_.spans}};
}

std::string watched_run::failure() const {
  if (counts_.lost == 0) return {};
  return fmt::format("{} of {} publications were lost: {} overwritten, {} not as planned",
                     counts_.lost, counts_.planned, counts_.overwritten, counts_.mismatched);
}

}  // namespace reprise::app
