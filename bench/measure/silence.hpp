// Nothing is logged while it lives: for runs that plan what would be told.
#pragma once

#include <string_view>
#include <utility>

#include "reprise/telemetry/log.hpp"

namespace reprise::bench {

class silence {
 public:
  silence() : before_{set_log_sink([](std::string_view) {})} {}
  ~silence() { set_log_sink(std::move(before_)); }
  silence(const silence&) = delete;
  silence& operator=(const silence&) = delete;

 private:
  log_sink before_;
};

}  // namespace reprise::bench
