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

std::string metrics_text(std::string_view sink, const sink_counts& counts) {
  std::string text;
  const std::string name = label(sink);
  const auto line = [&](std::string_view what, auto value) {
    fmt::format_to(std::back_inserter(text), "reprise_sink_{}{{sink=\"{}\"}} {}\n", what, name,
                   value);
  };
  line("records_published_total", counts.published);
  line("records_delivered_total", counts.delivered);
  line("records_lost_total", counts.lost);
  line("records_dropped_total", counts.dropped);
  line("queue_records", counts.waiting);
  line("queue_bytes", counts.waiting_bytes);
  line("batches_total", counts.batches);
  line("retries_total", counts.retries);
  line("flushes_total", counts.flushes);
  line("failed_flushes_total", counts.failed_flushes);
  line("full_queue_waits_total", counts.waits);
  line("full_queue_wait_us_total", counts.waited_us);
  line("longest_lag_us", counts.longest_lag_us);
  for (const auto& [point, lost] : counts.lost_of) {
    fmt::format_to(std::back_inserter(text),
                   "reprise_sink_point_lost_total{{sink=\"{}\",point=\"{}\"}} {}\n", name,
                   label(point), lost);
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
