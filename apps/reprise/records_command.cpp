#include "apps/reprise/records_command.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <vector>

#include "apps/reprise/output.hpp"
#include "apps/reprise/records_report.hpp"
#include "apps/reprise/whole_number.hpp"
#include "reprise/base/error.hpp"
#include "reprise/records/record_export.hpp"
#include "reprise/records/record_filter.hpp"
#include "reprise/records/record_heat_map.hpp"

namespace reprise::app {

namespace {

struct typed_records {
  std::string folder;
  std::string where;
  bool summary = false;
  std::optional<std::string> as;
  std::optional<std::string> out;
  std::optional<std::string> heat_map;
  std::int64_t limit = 20;
  output_options output;
};

std::string no_export(const std::string& text) {
  return text == "npy" || text == "safetensors" ? "" : "give npy or safetensors";
}

// What can be refused before a record is read.
void check_targets(const typed_records& typed) {
  if (typed.as.has_value() != typed.out.has_value()) {
    throw usage_error{"--export and --out go together: give --export npy|safetensors --out FILE"};
  }
  check_json_target(typed.output);
  if (typed.out) check_picture_target("--out", *typed.out, typed.output);
  if (typed.heat_map) check_picture_target("--heat-map", *typed.heat_map, typed.output);
  if (typed.out && typed.heat_map && *typed.out == *typed.heat_map) {
    throw usage_error{"--out and --heat-map name one file; give two"};
  }
}

void show(const typed_records& typed) {
  const record_filter filter = parse_record_filter(typed.where);
  check_targets(typed);
  const recorded_run run{typed.folder};
  const bool lists = !typed.summary && !typed.as && !typed.heat_map;
  run_report report{.run = run, .lists = lists};
  record_export arrays;
  record_heat_map map;
  run.read(filter, [&](const tap_record& record) {
    report.summary.add(record);
    ++report.matching;
    if (lists && report.listed.size() < static_cast<std::size_t>(typed.limit)) {
      report.listed.push_back(listed_record(record));
    }
    if (typed.as) arrays.add(record);
    if (typed.heat_map) map.add(record);
  });
  // Both are made before one is written: a refusal leaves no half of the answer.
  std::optional<grey_picture> picture;
  if (typed.heat_map) picture = map.picture();
  if (typed.as) {
    *typed.as == "npy" ? arrays.write_npy(*typed.out) : arrays.write_safetensors(*typed.out);
    report.written.push_back(
        fmt::format("{}: {} points, {} rows", *typed.out, arrays.points(), arrays.rows()));
  }
  if (picture) {
    write_png(*typed.heat_map, *picture);
    report.written.push_back(fmt::format("{}: norms of {} by layer and token, {} x {} pixels",
                                         *typed.heat_map, map.kind(), picture->width,
                                         picture->height));
  }
  if (!typed.output.quiet) print(typed.output.people(), report);
  if (typed.output.json) write_json(typed.output, as_json(report));
}

}  // namespace

void add_records(verb_ref root) {
  const verb_ref verb =
      root.add_subcommand("records", "what a run directory holds: list, summarise, export");
  verb.footer(
      "Without --summary, --export and --heat-map the first records are listed. A filter is "
      "fields\n"
      "joined by commas: point, content, layer, shard, run, step, request, token; numbers are N,\n"
      "A-B, or several of these joined by '+'. A run that goes on, or was cut off, is read as far "
      "as its\n"
      "batches are whole.\n\n"
      "Example: reprise records run1 --where point=resid_pre,layer=3,request=7,step=10-20 "
      "--summary");
  const auto typed = std::make_shared<typed_records>();
  verb.add_option("DIR", typed->folder, "the folder of the run").check(not_empty).required();
  verb.add_option("--where", typed->where, "only records that pass this filter")
      .option_text("FILTER");
  verb.add_flag("--summary", typed->summary, "a line for each point instead of records");
  verb.add_option("--export", typed->as,
                  "write rows as an array: npy (of one point) or safetensors")
      .option_text("npy|safetensors")
      .check(no_export);
  verb.add_option("--out", typed->out, "the file that --export writes").option_text("FILE");
  verb.add_option("--heat-map", typed->heat_map,
                  "a picture (PNG) of the norms of rows, by layer and token")
      .option_text("FILE");
  verb.add_option("--limit", typed->limit, "how many records are listed [20]")
      .option_text("N")
      .check(whole_number)
      .range(0, 1'000'000);
  add_output_options(verb, typed->output);
  verb.callback([typed] { show(*typed); });
}

}  // namespace reprise::app
