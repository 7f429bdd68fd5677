#include "reprise/tap/tap_counts.hpp"

#include <fmt/format.h>

#include <iterator>

namespace reprise {

namespace {

struct metric_row {
  const char* name;
  const char* help;
  std::uint64_t tap_counts::*value;
};

constexpr metric_row metric_rows[] = {
    {"steps", "steps that ran under the monitor", &tap_counts::steps},
    {"publications_planned", "publications that were promised room", &tap_counts::planned},
    {"publications", "publications that were found whole", &tap_counts::published},
    {"records", "records handed to the sinks", &tap_counts::records},
    {"reserved_bytes", "bytes of the ring that were promised", &tap_counts::reserved_bytes},
    {"published_bytes", "bytes of the ring that were published", &tap_counts::published_bytes},
    {"drained_bytes", "bytes of the ring that were drained", &tap_counts::drained_bytes},
    {"record_bytes", "bytes of rows in records", &tap_counts::record_bytes},
    {"drain_copies", "copies that drained them", &tap_counts::spans},
    {"drain_copies_by_kernel", "of those, by a kernel", &tap_counts::spans_by_kernel},
    {"dropped", "publications left out for want of room", &tap_counts::dropped},
    {"lost", "publications that were planned and not found", &tap_counts::lost},
    {"overwritten", "of those, found overwritten", &tap_counts::overwritten},
    {"mismatched", "of those, of another point or size", &tap_counts::mismatched},
    {"mislabelled", "of those, whose marker says otherwise", &tap_counts::mislabelled},
    {"clamped", "row tables that were cut", &tap_counts::clamped},
    {"reserve_waits", "waits for room", &tap_counts::reserve_waits},
    {"reserve_wait_ms", "milliseconds of them", &tap_counts::waited_ms},
    {"reserve_timeouts", "of them, that ended in a drop", &tap_counts::timed_out},
    {"never_fit", "plans larger than the ring or the staging", &tap_counts::never_fit},
    {"direct", "publications that went straight to the host", &tap_counts::direct},
    {"uploads", "plans that a launch was told of", &tap_counts::uploads},
    {"withdrawn", "plans whose launch failed", &tap_counts::withdrawn},
    {"flushes", "flushes", &tap_counts::flushes},
    {"sink_published", "records handed over, once for each sink", &tap_counts::sink_published},
    {"sink_delivered", "of those, that a sink took", &tap_counts::sink_delivered},
    {"sink_lost", "of those, that a sink did not take", &tap_counts::sink_lost},
};

// As the text format wants label values: kinds come from a program, not from a registry.
std::string label_text(const std::string& value) {
  std::string text;
  for (const char c : value) {
    if (c == '\\' || c == '"') text += '\\';
    if (c == '\n') {
      text += "\\n";
    } else {
      text += c;
    }
  }
  return text;
}

// Nothing for a whole tensor; else what keeps its series apart from those of the other shards.
std::string shard_label(const point_counts& one) {
  return one.shards == 1 ? "" : fmt::format(",shard=\"{}of{}\"", one.shard, one.shards);
}

}  // namespace

std::string prometheus_text(const tap_counts& counts) {
  std::string text;
  const auto out = std::back_inserter(text);
  for (const metric_row& row : metric_rows) {
    fmt::format_to(out, "# HELP reprise_tap_{0}_total {1}\n# TYPE reprise_tap_{0}_total counter\n",
                   row.name, row.help);
    fmt::format_to(out, "reprise_tap_{}_total {}\n", row.name, counts.*row.value);
  }
  const auto per_point = [&](const char* name, std::uint64_t point_counts::*value) {
    fmt::format_to(out, "# TYPE reprise_tap_point_{}_total counter\n", name);
    for (const point_counts& one : counts.points) {
      fmt::format_to(out, "reprise_tap_point_{}_total{{kind=\"{}\",layer=\"{}\"{}}} {}\n", name,
                     label_text(one.kind), one.layer, shard_label(one), one.*value);
    }
  };
  per_point("planned", &point_counts::planned);
  per_point("published", &point_counts::published);
  per_point("dropped", &point_counts::dropped);
  per_point("lost", &point_counts::lost);
  return text;
}

}  // namespace reprise
