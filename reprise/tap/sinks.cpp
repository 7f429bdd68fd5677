#include "reprise/tap/sinks.hpp"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "reprise/telemetry/log.hpp"

namespace reprise {

void sink_list::add(std::unique_ptr<record_sink> sink, std::string_view run) {
  sink->open(run);
  sinks_.push_back(std::move(sink));
}

template <class Call>
bool sink_list::tried(Call&& call) {
  try {
    call();
    return true;
  } catch (const std::exception& failed) {
    if (failures_++ == 0) {
      first_failure_ = failed.what();
      log_line(fmt::format("a sink of taps failed, and goes without what it did not take: {}",
                           failed.what()));
    }
    return false;
  }
}

void sink_list::write(std::span<const tap_record> records) {
  if (records.empty()) return;
  for (const auto& sink : sinks_) {
    if (!tried([&] { sink->write(records); })) lost_ += records.size();
  }
}

void sink_list::flush() {
  for (const auto& sink : sinks_) tried([&] { sink->flush(); });
}

void sink_list::close() {
  for (const auto& sink : sinks_) tried([&] { sink->close(); });
  sinks_.clear();
}

}  // namespace reprise
