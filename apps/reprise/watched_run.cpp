#include "apps/reprise/watched_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>
#include <variant>

#include "apps/reprise/output.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/records/open_sink.hpp"
#include "reprise/records/sink_address.hpp"

namespace reprise::app {

namespace {

row_mode mode_of(const watch_options& typed) {
  return typed.rows.value_or("last") == "last" ? row_mode::last() : row_mode::real();
}

bool drops(const watch_options& typed) {
  return typed.when_full.value_or("wait") == "drop";
}

// Microseconds since 1970: no two runs of a fleet's table are likely to share it.
std::uint64_t number_of_this_run() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now).count());
}

monitor_options options_of(const watch_options& typed, std::string_view workload) {
  monitor_options how;
  how.run = number_of_this_run();
  how.run_name = fmt::format("{}-{}", workload, how.run);
  how.drop_when_full = drops(typed);
  return how;
}

// What a sink is called in counts and lines for people.
std::string name_of_place(const std::string& where) {
  const sink_address at = parse_sink_address(where);
  const auto* const database = std::get_if<clickhouse_address>(&at);
  return database == nullptr ? where : database->text();
}

bool is_folder(const std::string& where) {
  return std::holds_alternative<run_folder_address>(parse_sink_address(where));
}

void refuse_unless_watched(const watch_options& typed) {
  const std::pair<const char*, bool> given[] = {{"--rows", typed.rows.has_value()},
                                                {"--out", !typed.out.empty()},
                                                {"--when-full", typed.when_full.has_value()},
                                                {"--metrics", typed.metrics.has_value()},
                                                {"--metrics-port", typed.metrics_port.has_value()}};
  for (const auto& [option, is_given] : given) {
    if (!is_given) continue;
    throw usage_error{
        fmt::format("{} goes with --watch SET, which says what is taken; give both", option)};
  }
}

}  // namespace

void add_watch_options(verb_ref verb, watch_options& into) {
  verb.add_option("--watch", into.points, "points to take records of, such as resid_pre:0-3+7")
      .option_text("SET")
      .check(not_empty);
  verb.add_option("--rows", into.rows, "of each request: all or last [last]").option_text("WHICH");
  verb.add_option(
          "--out", into.out,
          "where records go: a folder, or clickhouse://[USER:PASSWORD@]HOST:PORT/DB; may be "
          "given again [counted only]")
      .option_text("WHERE")
      .one_at_a_time();
  verb.add_option("--when-full", into.when_full,
                  "where records leave slower than they come: wait or drop [wait]")
      .option_text("HOW");
  verb.add_option("--metrics", into.metrics, "where to write counts of taps, as Prometheus text")
      .option_text("FILE");
  verb.add_option("--metrics-port", into.metrics_port,
                  "where to read them meanwhile: http://127.0.0.1:PORT/metrics; 0: any free port")
      .option_text("PORT")
      .range(0, 65535);
}

void check_watch_options(const watch_options& typed) {
  if (!typed.asked()) return refuse_unless_watched(typed);
  if (const std::string rows = typed.rows.value_or("last"); rows != "last" && rows != "all") {
    throw usage_error{fmt::format("--rows {}: give all or last", rows)};
  }
  if (const std::string how = typed.when_full.value_or("wait"); how != "wait" && how != "drop") {
    throw usage_error{fmt::format("--when-full {}: give wait or drop", how)};
  }
  std::set<std::string> places;
  for (const std::string& where : typed.out) {
    const std::string place = name_of_place(where);
    if (!places.insert(place).second) {
      throw usage_error{fmt::format("--out {}: it is given twice; leave one out", place)};
    }
  }
  if (typed.metrics) check_file_target("--metrics", *typed.metrics);
}

void watched_run::taken::add(const tap_record& one) {
  ++records;
  rows += static_cast<std::uint64_t>(one.rows);
  bytes += one.bytes.size();
  ++by_point[point_name(one)];
  ++by_request[one.request];
}

watched_run::watched_run(device_ref device, const watch_options& typed, std::string_view workload,
                         const std::vector<point>& known)
    : typed_{typed}, how_{options_of(typed, workload)}, eye_{device, how_} {
  const point_set set{typed.points};
  if (const std::string none = set.unmatched(known); !none.empty()) {
    throw usage_error{fmt::format("--watch {}: '{}' is no point of this model; it marks {}:0-{}",
                                  typed.points, none, known.front().kind, known.back().layer)};
  }
  eye_.watch({set, mode_of(typed)});
  eye_.deliver_to([this](const tap_record& one) { taken_.add(one); });
  // Databases first: a folder is made by opening it, and is not there where one refuses.
  std::ranges::stable_partition(typed_.out, [](const auto& where) { return !is_folder(where); });
  for (const std::string& where : typed_.out) {
    unopened_.push_back({name_of_place(where), open_sink(where)});
  }
  if (typed.metrics_port) {
    server_.emplace(static_cast<int>(*typed.metrics_port), [this] { return eye_.metrics(); });
  }
}

watched_run::~watched_run() = default;

void watched_run::plan(std::span<const request_rows> rows) {
  for (unopened_sink& one : std::exchange(unopened_, {})) {
    sink_queue_options options;
    options.name = one.name;
    options.loss = when_lost::count;  // finish() tells it
    eye_.send_to(std::move(one.sink), std::move(options));
  }
  eye_.plan_step(rows);
}

void watched_run::finish() {
  try {
    eye_.stop();
  } catch (const sink_error& lost) {
    failed_ = lost.what();
  }
  counts_ = eye_.counts();
  sinks_ = eye_.sink_counts();
  if (typed_.metrics) write_metrics();
  server_.reset();
}

void watched_run::write_metrics() {
  if (write_text(*typed_.metrics, eye_.metrics()) || !failed_.empty()) return;
  failed_ =
      fmt::format("--metrics {}: the file cannot be written; give another place", *typed_.metrics);
}

void watched_run::print(std::FILE* to) const {
  fmt::print(to, "  taps        {} records of {} points, {} rows, {} bytes; {} lost, {} dropped\n",
             taken_.records, taken_.by_point.size(), taken_.rows, taken_.bytes, counts_.lost,
             counts_.dropped);
  for (const named_sink_counts& sink : sinks_) {
    fmt::print(to, "  records     {} in {}, {} lost\n", sink.counts.delivered,
               formats::printable(sink.name), sink.counts.lost);
  }
}

nlohmann::json watched_run::as_json() const {
  nlohmann::json requests = nlohmann::json::object();
  for (const auto& [request, records] : taken_.by_request) {
    requests[std::to_string(request)] = records;
  }
  nlohmann::json sinks = nlohmann::json::array();
  for (const auto& [name, counts] : sinks_) {
    sinks.push_back({{"sink", name},
                     {"published", counts.published},
                     {"delivered", counts.delivered},
                     {"lost", counts.lost},
                     {"retries", counts.retries},
                     {"waits", counts.waits},
                     {"longest_lag_us", counts.longest_lag_us}});
  }
  return {{"run", how_.run_name},
          {"watch", typed_.points},
          {"rows_mode", typed_.rows.value_or("last")},
          {"records", taken_.records},
          {"rows", taken_.rows},
          {"bytes", taken_.bytes},
          {"points", taken_.by_point},
          {"requests", requests},
          {"published", counts_.published},
          {"lost", counts_.lost},
          {"dropped", counts_.dropped},
          {"reserve_waits", counts_.reserve_waits},
          {"drain_copies", counts_.spans},
          {"sinks", sinks}};
}

std::string watched_run::failure() const {
  if (counts_.lost != 0) {
    return fmt::format("{} of {} publications were lost: {} overwritten, {} not as planned",
                       counts_.lost, counts_.planned, counts_.overwritten, counts_.mismatched);
  }
  if (counts_.dropped != 0 && !drops(typed_)) {
    return fmt::format(
        "{} publications found no room in time and were left out; give --out a faster place, or "
        "watch fewer points",
        counts_.dropped);
  }
  return failed_;
}

}  // namespace reprise::app
