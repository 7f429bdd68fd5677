#include "reprise/records/sink_counts.hpp"

#include <fmt/format.h>

#include <iterator>

#include "reprise/formats/printable.hpp"

namespace reprise {

namespace {

// As the text format of Prometheus wants the value of a label.
std::string label(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    c == '\n' ? escaped += "\\n" : escaped += c;
  }
  return escaped;
}

}  // namespace

std::string metrics_text(std::span<const named_sink_counts> sinks) {
  if (sinks.empty()) return {};
  std::string text;
  const auto out = std::back_inserter(text);
  const auto metric = [&](std::string_view what, auto member) {
    fmt::format_to(out, "# TYPE reprise_sink_{} {}\n", what,
                   what.ends_with("_total") ? "counter" : "gauge");
    for (const named_sink_counts& sink : sinks) {
      fmt::format_to(out, "reprise_sink_{}{{sink=\"{}\"}} {}\n", what, label(sink.name),
                     sink.counts.*member);
    }
  };
  metric("records_published_total", &sink_counts::published);
  metric("records_delivered_total", &sink_counts::delivered);
  metric("records_lost_total", &sink_counts::lost);
  metric("records_dropped_total", &sink_counts::dropped);
  metric("queue_records", &sink_counts::waiting);
  metric("queue_bytes", &sink_counts::waiting_bytes);
  metric("batches_total", &sink_counts::batches);
  metric("retries_total", &sink_counts::retries);
  metric("flushes_total", &sink_counts::flushes);
  metric("failed_flushes_total", &sink_counts::failed_flushes);
  metric("full_queue_waits_total", &sink_counts::waits);
  metric("full_queue_wait_us_total", &sink_counts::waited_us);
  metric("longest_lag_us", &sink_counts::longest_lag_us);
  fmt::format_to(out, "# TYPE reprise_sink_point_lost_total counter\n");
  for (const named_sink_counts& sink : sinks) {
    for (const auto& [point, lost] : sink.counts.lost_of) {
      fmt::format_to(out, "reprise_sink_point_lost_total{{sink=\"{}\",point=\"{}\"}} {}\n",
                     label(sink.name), label(point), lost);
    }
  }
  return text;
}

std::string loss_text(std::string_view sink, const sink_counts& counts) {
  if (counts.lost == 0 && counts.failed_flushes == 0) return {};
  if (counts.lost == 0) {
    return fmt::format("sink {} failed to flush {} times: {}", formats::quoted_name(sink),
                       counts.failed_flushes, counts.first_error);
  }
  std::string points;
  std::size_t left = 4;  // a line names so many points
  for (const auto& [point, lost] : counts.lost_of) {
    if (left-- == 0) {
      points += ", ...";
      break;
    }
    points += fmt::format("{}{} {}", points.empty() ? "" : ", ", formats::printable(point), lost);
  }
  return fmt::format("sink {} lost {} of {} records ({}): {}", formats::quoted_name(sink),
                     counts.lost, counts.published, points, counts.first_error);
}

}  // namespace reprise
