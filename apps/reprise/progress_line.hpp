// Progress for people: one line that redraws itself on a terminal; in a pipe, a plain line whenever
// something new begins.
#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

namespace reprise::app {

class progress_line {
 public:
  // Quiet: shows nothing.
  progress_line(std::FILE* to, bool quiet);
  // Takes the line off the terminal.
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;

  // `detail` changes as it goes, and is for terminals alone.
  void show(std::string_view what, std::size_t done, std::size_t total,
            std::string_view detail = {});
  // `show`, for what tells of its progress; this outlives it.
  auto listener() {
    return [this](std::string_view what, std::size_t done, std::size_t total) {
      show(what, done, total);
    };
  }
  void clear();

 private:
  std::FILE* to_;
  bool quiet_;
  bool redraws_;
  bool drawn_ = false;
  std::string what_;
};

}  // namespace reprise::app
