// Another program that is run beside this one, for what it measures and prints.
#pragma once

#include <string>
#include <vector>

namespace reprise::bench {

struct program_output {
  int status = -1;   // what it exited with; -1: it could not be started, or was killed
  std::string text;  // of both its streams, in the order it wrote them

  // What it said last, without the end of its line.
  std::string last_line() const;
};

enum class program_errors : unsigned char { dropped, beside };

// Runs it by these words, found as a shell finds it, and waits. `errors`: what becomes of its
// standard error.
program_output run_program(const std::vector<std::string>& words, program_errors errors);

}  // namespace reprise::bench
