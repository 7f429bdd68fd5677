#include "reprise/replay/bisect.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "reprise/base/error.hpp"
#include "reprise/replay/replay_prefix.hpp"

extern char** environ;

namespace reprise {

namespace {

// A file that is gone when this is.
class list_file {
 public:
  list_file() {
    std::string name = (std::filesystem::temp_directory_path() / "reprise-bisect-XXXXXX").string();
    const int made = mkstemp(name.data());
    if (made < 0) {
      throw usage_error{
          fmt::format("bisect: no file can be made in {}: {}; set TMPDIR to a folder "
                      "that can be written",
                      std::filesystem::temp_directory_path().string(), std::strerror(errno))};
    }
    ::close(made);
    path_ = name;
  }
  ~list_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  list_file(const list_file&) = delete;
  list_file& operator=(const list_file&) = delete;

  const std::string& path() const { return path_; }
  // By tabs.
  std::vector<std::vector<std::string>> rows() const {
    std::vector<std::vector<std::string>> all;
    std::ifstream from{path_};
    for (std::string line; std::getline(from, line);) {
      std::vector<std::string>& row = all.emplace_back(1);
      for (const char c : line) {
        if (c == '\t') {
          row.emplace_back();
        } else {
          row.back() += c;
        }
      }
    }
    return all;
  }

 private:
  std::string path_;
};

enum class ending : std::uint8_t { outlived, failed, other };

class search {
 public:
  search(const std::vector<std::string>& program, const bisect_options& options)
      : program_{program}, options_{options} {}

  int runs = 0;

  ending run(std::optional<std::size_t> works, std::uint64_t replays, const std::string& step,
             const list_file& list) {
    ++runs;
    const std::string how = fmt::format("REPRISE_BISECT={}:{}:{}",
                                        works ? fmt::format("{}", *works) : "all", replays, step);
    const ending found = ending_of(start({how, "REPRISE_BISECT_LIST=" + list.path()}));
    if (options_.on_run) options_.on_run(works, found != ending::failed);
    return found;
  }

 private:
  // Its stdout goes to stderr: that of whoever searches is his own.
  pid_t start(const std::vector<std::string>& more) const {
    std::vector<char*> arguments;
    for (const std::string& one : program_) arguments.push_back(const_cast<char*>(one.c_str()));
    arguments.push_back(nullptr);
    std::vector<char*> variables;
    for (char** one = environ; *one != nullptr; ++one) {
      if (std::strncmp(*one, "REPRISE_BISECT", 14) != 0) variables.push_back(*one);
    }
    for (const std::string& one : more) variables.push_back(const_cast<char*>(one.c_str()));
    variables.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    pid_t made = 0;
    const int status =
        posix_spawnp(&made, arguments[0], &files, nullptr, arguments.data(), variables.data());
    posix_spawn_file_actions_destroy(&files);
    if (status != 0) {
      throw usage_error{
          fmt::format("bisect: '{}' cannot be started: {}; give a program, and its "
                      "arguments behind it",
                      program_.front(), std::strerror(status))};
    }
    return made;
  }

  ending ending_of(pid_t child) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{options_.seconds};
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return ending::failed;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    // One that a signal ended has failed too: a driver may take the process along.
    if (WIFSIGNALED(status)) return ending::failed;
    switch (WEXITSTATUS(status)) {
      case replay_prefix::outlived: return ending::outlived;
      case replay_prefix::failed: return ending::failed;
      default: return ending::other;
    }
  }

  const std::vector<std::string>& program_;
  const bisect_options& options_;
};

}  // namespace

std::optional<failing_work> find_failing_work(const std::vector<std::string>& program,
                                              const bisect_options& options) {
  if (program.empty()) throw usage_error{"bisect: there is no program; give one behind --"};
  search by{program, options};
  failing_work found;
  const list_file whole;
  if (by.run(std::nullopt, 0, "", whole) != ending::failed) return std::nullopt;
  for (const auto& row : whole.rows()) {
    if (row.size() == 3 && row[0] == "replay") {
      found.replay = std::strtoull(row[1].c_str(), nullptr, 10);
      found.step = row[2];
    }
    if (row.size() >= 2 && row[0] == "failed") found.message = row[1];
  }
  if (found.replay == 0) {
    throw usage_error{fmt::format(
        "bisect: '{}' was ended by a signal or after {} s, and no replay of it had begun; what it "
        "said is above",
        program.front(), options.seconds)};
  }
  // By a signal it ends without a word of the device.
  if (found.message.empty()) found.message = "the process was ended in it";
  // The last recording of that step before the failure is the one that failed.
  std::vector<std::vector<std::string>> works;
  for (const auto& row : whole.rows()) {
    if (row.size() == 5 && row[0] == "work" && row[4] == found.step) works.push_back(row);
    if (row.size() == 3 && row[0] == "recording" && row[2] == found.step) {
      found.works = std::strtoull(row[1].c_str(), nullptr, 10);
    }
  }
  std::size_t outlived = 0;           // a prefix that the device outlives
  std::size_t failing = found.works;  // and one that it does not
  while (failing - outlived > 1) {
    const std::size_t middle = outlived + (failing - outlived) / 2;
    const list_file unused;
    switch (by.run(middle, found.replay, found.step, unused)) {
      case ending::outlived: outlived = middle; break;
      case ending::failed: failing = middle; break;
      case ending::other:
        throw usage_error{fmt::format(
            "bisect: run {} of '{}' ended without replay {} of step '{}'; give it arguments with "
            "which it always runs alike",
            by.runs, program.front(), found.replay, found.step)};
    }
  }
  found.index = failing - 1;
  const std::size_t at = works.size() - found.works + found.index;
  found.kind = works[at][2];
  found.label = works[at][3];
  found.runs = by.runs;
  return found;
}

}  // namespace reprise
