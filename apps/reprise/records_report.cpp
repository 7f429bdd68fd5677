#include "apps/reprise/records_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/reprise/version.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise::app {

namespace {

// "tokens 3", "tokens 3-5", or "no rows".
std::string tokens_text(std::int64_t first, std::int64_t last, bool any) {
  if (!any) return "no rows";
  return first == last ? fmt::format("token {}", first) : fmt::format("tokens {}-{}", first, last);
}

std::string types_text(const std::set<dtype>& types) {
  std::string text;
  for (const dtype type : types)
    text += fmt::format("{}{}", text.empty() ? "" : " ", name_of(type));
  return text;
}

// ", split along axis 1" of a shard, or nothing.
std::string axes_text(const std::set<int>& axes) {
  std::string text;
  for (const int axis : axes) {
    if (axis >= 0)
      text += fmt::format("{}{}", text.empty() ? ", split along axis " : " and ", axis);
  }
  return text;
}

void print_listed(std::FILE* to, const run_report& report) {
  for (const listed_record& r : report.listed) {
    const std::string point = formats::printable(point_name(r.kind, r.layer, r.shard, r.shards));
    fmt::print(to, "  step {:<6} request {:<5} {:<20} {:<6} {:<14} {} [{}], {} bytes\n", r.step,
               r.request, point, name_of(r.content),
               tokens_text(r.first_row, r.first_row + r.rows - 1, r.rows != 0), name_of(r.type),
               fmt::join(r.shape, ", "), r.bytes);
  }
  if (report.listed.size() < report.matching) {
    fmt::print(to, "  and {} more; --limit N lists more, --summary all points\n",
               report.matching - report.listed.size());
  }
}

void print_points(std::FILE* to, const record_summary& summary) {
  for (const auto& [point, what] : summary.points()) {
    fmt::print(to,
               "  {:<20} {} records, {} rows, {} bytes; {} requests, steps {}-{}, {}; {}{}; mean "
               "norm {:.6g}{}\n",
               formats::printable(point.name()), what.records, what.rows, what.bytes,
               what.requests.size(), what.first_step, what.last_step,
               tokens_text(what.first_token, what.last_token, what.rows != 0),
               types_text(what.types), axes_text(what.shard_axes), what.mean_norm(),
               what.bad_elements == 0
                   ? ""
                   : fmt::format("; {} elements are not finite", what.bad_elements));
  }
}

nlohmann::json point_json(const recorded_point& point, const point_summary& what) {
  nlohmann::json types = nlohmann::json::array();
  for (const dtype type : what.types) types.push_back(name_of(type));
  nlohmann::json tokens = nullptr;
  if (what.rows != 0) tokens = {what.first_token, what.last_token};
  return {{"point", point.name()},
          {"kind", point.kind},
          {"layer", point.layer},
          {"shard", point.shard},
          {"shards", point.shards},
          {"shard_axes", what.shard_axes},
          {"records", what.records},
          {"rows", what.rows},
          {"bytes", what.bytes},
          {"requests", what.requests.size()},
          {"steps", {what.first_step, what.last_step}},
          {"tokens", tokens},
          {"dtypes", types},
          {"mean_norm", what.mean_norm()},
          {"not_finite", what.bad_elements}};
}

nlohmann::json record_json(const listed_record& r) {
  return {{"run", r.run},
          {"step", r.step},
          {"replay", r.replay},
          {"kind", r.kind},
          {"layer", r.layer},
          {"shard", r.shard},
          {"shards", r.shards},
          {"shard_axis", r.shard_axis},
          {"content", name_of(r.content)},
          {"request", r.request},
          {"first_row", r.first_row},
          {"rows", r.rows},
          {"place", r.place},
          {"dtype", name_of(r.type)},
          {"shape", r.shape},
          {"bytes", r.bytes}};
}

}  // namespace

listed_record::listed_record(const tap_record& record)
    : run{record.run},
      step{record.step},
      replay{static_cast<std::uint64_t>(record.replay)},
      kind{record.kind},
      layer{record.layer},
      shard{record.shard},
      shards{record.shards},
      shard_axis{record.shard_axis},
      content{record.content},
      request{record.request},
      first_row{record.first_row},
      rows{record.rows},
      place{record.place},
      type{record.type},
      shape{record.shape.begin(), record.shape.end()},
      bytes{record.bytes.size()} {}

void print(std::FILE* to, const run_report& report) {
  const recorded_run& run = report.run;
  fmt::print(to, "{}: {}; {} segments, {} batches, {} records\n", formats::printable(run.name()),
             name_of(run.state()), run.segments().size(), run.batches(), run.records());
  if (run.lost() != 0) fmt::print(to, "  {} more were lost on their way there\n", run.lost());
  if (run.cut_bytes() != 0) {
    fmt::print(to, "  {} bytes behind the last whole batch are half a batch\n", run.cut_bytes());
  }
  if (report.matching != run.records()) fmt::print(to, "  {} match\n", report.matching);
  report.lists ? print_listed(to, report) : print_points(to, report.summary);
  for (const std::string& line : report.written) fmt::print(to, "{}\n", line);
}

nlohmann::json as_json(const run_report& report) {
  nlohmann::json points = nlohmann::json::array();
  for (const auto& [point, what] : report.summary.points()) {
    points.push_back(point_json(point, what));
  }
  nlohmann::json value{{"version", version},
                       {"run", report.run.name()},
                       {"state", name_of(report.run.state())},
                       {"segments", report.run.segments().size()},
                       {"batches", report.run.batches()},
                       {"records", report.run.records()},
                       {"lost", report.run.lost()},
                       {"cut_bytes", report.run.cut_bytes()},
                       {"matching", report.matching},
                       {"requests", report.summary.requests().size()},
                       {"points", points},
                       {"written", report.written}};
  if (report.lists) {
    value["listed"] = nlohmann::json::array();
    for (const listed_record& record : report.listed) {
      value["listed"].push_back(record_json(record));
    }
  }
  return value;
}

}  // namespace reprise::app
