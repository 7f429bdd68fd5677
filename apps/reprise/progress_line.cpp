#include "apps/reprise/progress_line.hpp"

#include <fmt/format.h>

#include "apps/reprise/output.hpp"

namespace reprise::app {

progress_line::progress_line(std::FILE* to, bool quiet)
    : to_{to}, quiet_{quiet}, redraws_{is_terminal(to)} {}

progress_line::~progress_line() {
  clear();
}

void progress_line::show(std::string_view what, std::size_t done, std::size_t total,
                         std::string_view detail) {
  if (quiet_) return;
  if (redraws_) {
    const std::size_t percent = total == 0 ? 100 : 100 * done / total;
    fmt::print(to_, "\r\x1b[K{} ... {} %{}{}", what, percent, detail.empty() ? "" : ", ", detail);
    drawn_ = true;
  } else if (what != what_) {
    fmt::print(to_, "{} ...\n", what);
  }
  what_ = what;
  std::fflush(to_);
}

void progress_line::clear() {
  if (drawn_) fmt::print(to_, "\r\x1b[K");
  drawn_ = false;
  std::fflush(to_);
}

}  // namespace reprise::app
