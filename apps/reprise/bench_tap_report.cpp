#include "apps/reprise/bench_tap_report.hpp"

#include <fmt/format.h>

#include <string>

#include "apps/reprise/bench_output.hpp"

namespace reprise::app {

namespace {

using bench::call_figure;
using bench::median_interval;
using bench::placement;
using bench::placement_row;
using bench::planning_figure;
using bench::rate_figure;
using bench::tap_bench_report;

constexpr const char* by_events = "between two CUDA events around the call";
constexpr const char* by_host = "of the host, from the call until the stream was synchronised";

std::string kept_text(std::optional<bool> within) {
  return !within ? "not known" : (*within ? "kept" : "NOT KEPT");
}

std::string shown_rate(std::optional<double> gb_s) {
  return gb_s ? fmt::format("{:.1f}", *gb_s) : "-";
}

std::string shown_percent(std::optional<double> share) {
  return share ? fmt::format("{:.1f} %", 100 * *share) : "-";
}

std::string shown_interval(const median_interval& of) {
  return fmt::format("{:.2f} ({:.2f} .. {:.2f})", of.median, of.low, of.high);
}

std::string placement_verdict(const placement_row& row) {
  std::string text = verdict_of(row.device);
  if (row.from_idle && row.from_idle->limit_us) {
    text += fmt::format("; from idle {:.2f}: {}", *row.from_idle->limit_us,
                        kept_text(row.from_idle->within()));
  }
  return text;
}

std::string rate_verdict(const rate_figure& f) {
  std::string limit;
  if (f.least_gb_s) limit = fmt::format("at least {:g} GB/s", *f.least_gb_s);
  if (f.least_share) limit = fmt::format("at least {:g} % of the copy", 100 * *f.least_share);
  if (f.most_us) limit = fmt::format("at most {:g} us", *f.most_us);
  return limit.empty() ? "" : fmt::format("{}: {}", limit, kept_text(f.within()));
}

void print_placement(std::FILE* to, const placement& one) {
  constexpr const char* line = "  {:<26}{:>10}  {:<20}{:>10}{:>9}{:>11}{:>9}{:>9}{:>9}  {}\n";
  fmt::print(to, "\nresiduals of {} KiB in {} buffers, {} layers of {} MiB\n",
             one.shape.residual_bytes >> 10, one.shape.buffers, one.shape.layers,
             one.shape.weight_bytes >> 20);
  fmt::print(to, line, "us", "device", "p10 .. p90", "bare", "adds", "from idle", "adds", "host",
             "adds", "");
  for (const placement_row& row : one.rows) {
    const auto us = [](const std::optional<call_figure>& of) {
      return shown_us(of ? median(of->us) : std::nullopt);
    };
    const auto adds = [](const std::optional<call_figure>& of) {
      return shown_us(of ? of->adds_us() : std::nullopt);
    };
    fmt::print(to, line, row.device.what, shown_us(median(row.device.us)),
               shown_range(row.device.us), shown_us(median(row.device.floor_us)),
               shown_us(row.device.adds_us()), us(row.from_idle), adds(row.from_idle), us(row.host),
               adds(row.host), placement_verdict(row));
  }
  for (const placement_row& row : one.rows) {
    if (!row.device_adds || !row.from_idle_adds) continue;
    fmt::print(
        to, "  {} adds {} us, from idle {} us: medians of {} differences, and {}\n",
        row.device.what, shown_interval(*row.device_adds), shown_interval(*row.from_idle_adds),
        row.device_adds->count,
        row.device_adds->count < 6 ? "the least and the greatest" : "where they lie with 95 %");
  }
}

constexpr const char* rate_line = "  {:<34}{:>11}  {:<24}{:>9}{:>12}{:>11}{:>11}  {}\n";

void print_rate(std::FILE* to, const rate_figure& f) {
  fmt::print(to, rate_line, f.what, shown_us(median(f.us)), shown_range(f.us), shown_rate(f.gb_s()),
             shown_us(median(f.floor_us)), shown_rate(f.floor_gb_s()), shown_percent(f.share()),
             rate_verdict(f));
}

void print_drains(std::FILE* to, const tap_bench_report& report) {
  for (const bench::drain_rates& one : report.drains) {
    fmt::print(to, "\ndrain of {} records of {} KiB in one flush\n", one.records,
               one.record_bytes >> 10);
    fmt::print(to, rate_line, "us", "median", "p10 .. p90", "GB/s", "one copy", "its GB/s",
               "of that", "");
    for (const rate_figure& f : one.figures) print_rate(to, f);
  }
}

void print_producers(std::FILE* to, const tap_bench_report& report) {
  fmt::print(to, "\none producer, read plus written\n");
  fmt::print(to, rate_line, "us", "median", "p10 .. p90", "GB/s", "a copy", "its GB/s", "of that",
             "");
  for (const bench::producer_rates& one : report.producers) print_rate(to, one.node);
  for (const bench::producer_rates& one : report.producers) {
    fmt::print(to, "  {} takes {} us more than {}\n", one.first.what, shown_us(one.first.adds_us()),
               one.first.floor);
  }
}

void print_planning(std::FILE* to, const tap_bench_report& report) {
  constexpr const char* line = "  {:<34}{:>11}  {:<24}{:>20}  {}\n";
  fmt::print(to, "\nplan of {} points and {} requests, made, placed and written\n",
             bench::planned_points, bench::planned_requests);
  fmt::print(to, line, "us", "median", "p10 .. p90", "its words filled", "");
  for (const planning_figure& f : report.planning) {
    fmt::print(to, line, f.what, shown_us(median(f.us)), shown_range(f.us),
               shown_us(median(f.floor_us)),
               fmt::format("at most {:g}: {}", bench::planning_limit_us, kept_text(f.within())));
  }
}

nlohmann::json interval_json(const std::optional<median_interval>& of) {
  if (!of) return nullptr;
  return {{"median", of->median}, {"low", of->low}, {"high", of->high}, {"count", of->count}};
}

nlohmann::json figure_json(const std::optional<call_figure>& of) {
  return of ? as_json(*of) : nlohmann::json{};
}

nlohmann::json placement_json(const placement& one) {
  nlohmann::json rows = nlohmann::json::array();
  for (const placement_row& row : one.rows) {
    rows.push_back({{"what", row.device.what},
                    {"device", as_json(row.device)},
                    {"from_idle", figure_json(row.from_idle)},
                    {"host", figure_json(row.host)},
                    {"device_adds_us", interval_json(row.device_adds)},
                    {"from_idle_adds_us", interval_json(row.from_idle_adds)}});
  }
  return {{"layers", one.shape.layers},
          {"layer_bytes", one.shape.weight_bytes},
          {"residual_bytes", one.shape.residual_bytes},
          {"buffers", one.shape.buffers},
          {"rows", rows}};
}

nlohmann::json rate_json(const rate_figure& f) {
  return {{"what", f.what},
          {"bytes", f.bytes},
          {"us", as_json(f.us)},
          {"gb_s", or_null(f.gb_s())},
          {"floor", f.floor},
          {"floor_us", as_json(f.floor_us)},
          {"floor_gb_s", or_null(f.floor_gb_s())},
          {"share", or_null(f.share())},
          {"least_gb_s", or_null(f.least_gb_s)},
          {"least_share", or_null(f.least_share)},
          {"most_us", or_null(f.most_us)},
          {"within", or_null(f.within())}};
}

nlohmann::json counts_json(const bench::watched_counts& c) {
  return {{"what", c.what},
          {"calls", c.calls},
          {"eager", c.eager},
          {"measured", c.measured},
          {"replayed", c.replayed},
          {"bitwise_equal", c.equal && c.wrong == 0},
          {"publications",
           {{"planned", c.planned},
            {"published", c.published},
            {"dropped", c.dropped},
            {"lost", c.lost}}},
          {"waits", c.waits},
          {"records", c.records},
          {"records_compared", c.compared}};
}

}  // namespace

void print_report(std::FILE* to, const tap_bench_report& report, device_ref device) {
  fmt::print(to, "{}, {}: {} rounds, {} pairs; device time {}\n", device.name(),
             device.traits().model, report.options.repeats, report.options.pairs,
             report.timed_by_events ? by_events : by_host);
  for (const placement& one : report.placements) print_placement(to, one);
  print_drains(to, report);
  print_producers(to, report);
  print_planning(to, report);
}

void add_report(nlohmann::json& to, const tap_bench_report& report) {
  to["repeats"] = report.options.repeats;
  to["pairs"] = report.options.pairs;
  to["device_time"] = report.timed_by_events ? by_events : by_host;
  to["placement"] = nlohmann::json::array();
  for (const placement& one : report.placements) to["placement"].push_back(placement_json(one));
  to["drain"] = nlohmann::json::array();
  for (const bench::drain_rates& one : report.drains) {
    nlohmann::json figures = nlohmann::json::array();
    for (const rate_figure& f : one.figures) figures.push_back(rate_json(f));
    to["drain"].push_back({{"record_bytes", one.record_bytes},
                           {"records", one.records},
                           {"figures", std::move(figures)}});
  }
  to["producers"] = nlohmann::json::array();
  for (const bench::producer_rates& one : report.producers) {
    to["producers"].push_back({{"bytes", one.bytes},
                               {"more_points", one.more_points},
                               {"node", rate_json(one.node)},
                               {"first", as_json(one.first)}});
  }
  to["planning"] = nlohmann::json::array();
  for (const planning_figure& f : report.planning) {
    to["planning"].push_back({{"what", f.what},
                              {"points", bench::planned_points},
                              {"requests", bench::planned_requests},
                              {"words", f.words},
                              {"us", as_json(f.us)},
                              {"floor", "its words filled"},
                              {"floor_us", as_json(f.floor_us)},
                              {"limit_us", bench::planning_limit_us},
                              {"within", f.within()}});
  }
  to["calls"] = nlohmann::json::array();
  for (const bench::watched_counts* const one : report.runs()) {
    to["calls"].push_back(counts_json(*one));
  }
}

}  // namespace reprise::app
