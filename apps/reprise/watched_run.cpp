#include "apps/reprise/watched_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <set>
#include <utility>
#include <variant>

#include "apps/reprise/output.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/excerpt.hpp"
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

constexpr std::array modes{toggle_mode::automatic, toggle_mode::variants, toggle_mode::host_lazy,
                           toggle_mode::host_eager, toggle_mode::device};

// Throws usage_error where it is none.
toggle_mode toggle_mode_of(const watch_options& typed) {
  const std::string name = typed.mode.value_or("automatic");
  const auto* const found =
      std::ranges::find(modes, name, [](toggle_mode mode) { return name_of(mode); });
  if (found != modes.end()) return *found;
  throw usage_error{
      fmt::format("--toggle-mode {}: give automatic, variants, host_lazy, host_eager or device",
                  formats::excerpt(name))};
}

watch_schedule schedule_of(const watch_options& typed) {
  return typed.schedule ? watch_schedule{*typed.schedule} : watch_schedule{};
}

monitor_options options_of(const watch_options& typed, std::string_view workload) {
  monitor_options how;
  how.run = number_of_this_run();
  how.run_name = fmt::format("{}-{}", workload, how.run);
  how.drop_when_full = drops(typed);
  how.switch_by = toggle_mode_of(typed);
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
                                                {"--metrics-port", typed.metrics_port.has_value()},
                                                {"--schedule", typed.schedule.has_value()},
                                                {"--toggle-mode", typed.mode.has_value()}};
  for (const auto& [option, is_given] : given) {
    if (!is_given) continue;
    throw usage_error{
        fmt::format("{} goes with --watch SET, which says what is taken; give both", option)};
  }
}

}  // namespace

void add_watch_options(verb_ref verb, watch_options& into) {
  verb.add_option("--watch", into.points,
                  "points to take records of, such as resid_pre:0-3+7; resid_pre is resid_pre:*")
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
  verb.add_option(
          "--schedule", into.schedule,
          "what is on from which decode step on: STEP=SET;STEP=SET; decode steps count from 0, "
          "prefills apart [all that is watched]")
      .option_text("TEXT");
  verb.add_option("--toggle-mode", into.mode,
                  "how taps are switched: automatic, variants, host_lazy, host_eager or device "
                  "[automatic]")
      .option_text("HOW");
}

void check_watch_options(const watch_options& typed) {
  if (!typed.asked()) return refuse_unless_watched(typed);
  if (const std::string rows = typed.rows.value_or("last"); rows != "last" && rows != "all") {
    throw usage_error{fmt::format("--rows {}: give all or last", formats::excerpt(rows))};
  }
  if (const std::string how = typed.when_full.value_or("wait"); how != "wait" && how != "drop") {
    throw usage_error{fmt::format("--when-full {}: give wait or drop", formats::excerpt(how))};
  }
  toggle_mode_of(typed);
  schedule_of(typed);
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
  if (keeps_rows) ++by_row[{one.request, one.first_row}];
}

watched_run::watched_run(device_ref device, const watch_options& typed, std::string_view workload,
                         const std::vector<point>& known)
    : typed_{typed},
      schedule_{schedule_of(typed)},
      how_{options_of(typed, workload)},
      eye_{device, how_} {
  const point_set set{typed.points};
  if (const std::string none = set.unmatched(known); !none.empty()) {
    constexpr std::size_t half = formats::most_quoted / 2;
    throw usage_error{fmt::format("--watch {}: '{}' is {}", formats::excerpt(typed.points, half),
                                  formats::excerpt(none, half), no_point_of_a_model_with(known))};
  }
  schedule_.check(known, set);
  taken_.keeps_rows = typed.schedule.has_value();
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

void watched_run::ahead_of(std::optional<std::uint64_t> decode_step) {
  decode_step_ = decode_step;
  if (!typed_.schedule) return;
  if (decode_step) record_steps_.push_back(steps_);
  any_on_ = any_on_ || (decode_step && !schedule_.at(*decode_step).empty());
  ++steps_;
  const point_set& wanted = decode_step ? schedule_.at(*decode_step) : schedule_.all();
  if (enabled_ == &wanted) return;
  enabled_ = &wanted;
  eye_.enable(wanted);
}

void watched_run::plan(std::span<const request_rows> rows) {
  for (unopened_sink& one : std::exchange(unopened_, {})) {
    sink_queue_options options;
    options.name = one.name;
    options.loss = when_lost::count;  // finish() tells it
    eye_.send_to(std::move(one.sink), std::move(options));
  }
  if (typed_.schedule && decode_step_) {
    for (const request_rows& one : rows) step_of_[{one.request, one.first_token}] = *decode_step_;
  }
  eye_.plan_step(rows);
}

void watched_run::finish(bool any_recorded) {
  any_recorded_ = any_recorded;
  switched_ = eye_.switch_counts();  // before all is switched back
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

std::uint64_t watched_run::driver_calls() const {
  return switched_.enable_calls + switched_.copies + switched_.variants_made + switched_.repairs;
}

// In mode device the plan that a launch brings says what is on in it, and nobody counts that.
bool watched_run::anything_switched() const {
  const bool driven = how_.switch_by == toggle_mode::device;
  return driven ? any_recorded_ && any_on_ : switched_.switches != 0;
}

std::string watched_run::chosen_mode() const {
  if (!anything_switched()) return "none";
  if (how_.switch_by == toggle_mode::device) return "device";
  return std::string{name_of(switched_.chosen)};
}

std::string watched_run::why_chosen() const {
  if (!anything_switched()) return "nothing had to be switched";
  if (how_.switch_by == toggle_mode::device) {
    return "asked for: the graph switches its own taps, by the plan that it brings";
  }
  return how_.switch_by == toggle_mode::automatic ? switched_.why : "asked for";
}

std::vector<std::uint64_t> watched_run::records_by_step() const {
  std::vector<std::uint64_t> all(record_steps_.size());
  for (const auto& [row, records] : taken_.by_row) {
    const auto step = step_of_.find(row);
    if (step != step_of_.end()) all[step->second] += records;
  }
  return all;
}

void watched_run::print(std::FILE* to) const {
  fmt::print(to, "  taps        {} records of {} points, {} rows, {} bytes; {} lost, {} dropped\n",
             taken_.records, taken_.by_point.size(), taken_.rows, taken_.bytes, counts_.lost,
             counts_.dropped);
  if (typed_.schedule) {
    const std::vector<std::uint64_t> steps = records_by_step();
    fmt::print(to, "  schedule    {} records in {} of {} decode steps\n",
               std::accumulate(steps.begin(), steps.end(), std::uint64_t{0}),
               std::ranges::count_if(steps, [](std::uint64_t records) { return records != 0; }),
               steps.size());
    fmt::print(to, "  switched    {} times by {} calls of the driver; {}, chosen {}: {}\n",
               switched_.switches, driver_calls(), name_of(how_.switch_by), chosen_mode(),
               why_chosen());
  }
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
  nlohmann::json all{{"run", how_.run_name},
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
                     {"sinks", sinks},
                     {"mode", name_of(how_.switch_by)}};
  if (!typed_.schedule) return all;
  all["schedule"] = *typed_.schedule;
  all["mode_chosen"] = chosen_mode();
  all["mode_why"] = why_chosen();
  all["switches"] = switched_.switches;
  all["driver_calls"] = driver_calls();
  nlohmann::json& by_step = all["records_by_step"] = nlohmann::json::array();
  for (const std::uint64_t records : records_by_step()) {
    const std::size_t step = by_step.size();
    by_step.push_back({{"step", step}, {"record_step", record_steps_[step]}, {"records", records}});
  }
  return all;
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
