#include "bench/measure/program.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string_view>

namespace reprise::bench {

namespace {

// For a shell, as one word.
std::string quoted(std::string_view text) {
  std::string all = "'";
  for (const char c : text) all += c == '\'' ? std::string{"'\\''"} : std::string{c};
  return all + "'";
}

}  // namespace

std::string program_output::last_line() const {
  const std::size_t end = text.find_last_not_of('\n') + 1;
  const std::size_t before = text.substr(0, end).rfind('\n');
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  return text.substr(begin, end - begin);
}

program_output run_program(const std::vector<std::string>& words, program_errors errors) {
  std::string line;
  for (const std::string& word : words) line += quoted(word) + " ";
  line += errors == program_errors::dropped ? "2>/dev/null" : "2>&1";
  program_output said;
  std::FILE* const pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return said;
  std::array<char, 4096> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) {
    said.text.append(part.data(), got);
  }
  const int ended = pclose(pipe);
  if (WIFEXITED(ended)) said.status = WEXITSTATUS(ended);
  return said;
}

}  // namespace reprise::bench
