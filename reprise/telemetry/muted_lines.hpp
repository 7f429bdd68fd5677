// Lines that are no news while something runs that expects them: what a plan says beforehand needs
// no line for people.
//
// Lines that are not muted go where they went before. One object at a time; made and gone on one
// thread, while any may log.
#pragma once

#include <functional>
#include <string_view>

#include "reprise/telemetry/log.hpp"

namespace reprise {

class muted_lines {
 public:
  explicit muted_lines(std::function<bool(std::string_view line)> is_muted);
  // Puts the sink back that was installed.
  ~muted_lines();
  muted_lines(const muted_lines&) = delete;
  muted_lines& operator=(const muted_lines&) = delete;

 private:
  log_sink before_;  // empty: the default
};

}  // namespace reprise
