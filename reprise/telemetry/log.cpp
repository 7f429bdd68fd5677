#include "reprise/telemetry/log.hpp"

#include <cstdio>
#include <mutex>
#include <utility>

namespace reprise {

namespace {

std::mutex guard;
log_sink installed;  // empty: the default

}  // namespace

log_sink set_log_sink(log_sink sink) {
  const std::lock_guard lock{guard};
  return std::exchange(installed, std::move(sink));
}

void log_line(std::string_view line) {
  const std::lock_guard lock{guard};
  if (installed) {
    installed(line);
  } else {
    std::fprintf(stderr, "reprise: %.*s\n", static_cast<int>(line.size()), line.data());
  }
}

}  // namespace reprise
