#include "reprise/telemetry/muted_lines.hpp"

#include <cstdio>
#include <utility>

namespace reprise {

muted_lines::muted_lines(std::function<bool(std::string_view)> is_muted)
    : before_{set_log_sink({})} {
  set_log_sink([this, is_muted = std::move(is_muted)](std::string_view line) {
    if (is_muted(line)) return;
    if (before_) {
      before_(line);
    } else {
      std::fprintf(stderr, "reprise: %.*s\n", static_cast<int>(line.size()), line.data());
    }
  });
}

muted_lines::~muted_lines() {
  set_log_sink(before_);
}

}  // namespace reprise
