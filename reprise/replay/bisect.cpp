#include "reprise/replay/bisect.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
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

// Thrown where a signal asks for the end of the search, and caught behind all that it has to undo.
struct interrupted {
  int signal;
};

std::atomic<int> signal_that_came{0};
static_assert(std::atomic<int>::is_always_lock_free);

// Signals that would end this process and leave the program running, while this is there. What is
// ignored stays so.
class caught_signals {
 public:
  caught_signals() {
    signal_that_came = 0;
    struct sigaction ours {};
    ours.sa_handler = [](int one) { signal_that_came = one; };
    ours.sa_flags = SA_RESTART;
    for (std::size_t i = 0; i < which.size(); ++i) {
      sigaction(which[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(which[i], &ours, nullptr);
    }
  }
  ~caught_signals() {
    for (std::size_t i = 0; i < which.size(); ++i) sigaction(which[i], &before_[i], nullptr);
  }
  caught_signals(const caught_signals&) = delete;
  caught_signals& operator=(const caught_signals&) = delete;

 private:
  static constexpr std::array which{SIGINT, SIGTERM, SIGHUP};
  std::array<struct sigaction, which.size()> before_{};
};

struct replay_row {
  std::uint64_t number = 0;  // 0: none
  std::string recording, step;
};

struct found_in_list {
  replay_row under_way;  // begun, and not passed
  bool any_passed = false;
  std::string failure;  // what the device said
};

// Threads may replay at once, each its own recordings: the last one to begin is taken.
found_in_list look_into(const list_file& list) {
  found_in_list found;
  std::vector<replay_row> begun;
  for (const auto& row : list.rows()) {
    if (row[0] == "replay" && row.size() == 4) {
      // One whose launch was refused is not passed, and over when its recording replays again.
      std::erase_if(begun, [&](const replay_row& one) {
        return one.recording == row[2] && one.step == row[3];
      });
      begun.push_back({std::strtoull(row[1].c_str(), nullptr, 10), row[2], row[3]});
    }
    if (row[0] == "passed" && row.size() == 3 && !REPRISE_MUTANT(search_blames_what_was_passed)) {
      std::erase_if(begun, [&](const replay_row& one) {
        return std::to_string(one.number) == row[1] && one.step == row[2];
      });
      found.any_passed = true;
    }
    if (row[0] == "failed" && row.size() == 2) found.failure = row[1];
  }
  if (!begun.empty()) found.under_way = begun.back();
  return found;
}

// What is run: the failing replay with so many works on; none: all of everything.
struct asked_try {
  std::optional<std::size_t> works;
  replay_row replay = {};
  std::string failure;  // that is looked for
};

class search {
 public:
  search(const std::vector<std::string>& program, const bisect_options& options)
      : program_{program}, options_{options} {}

  int runs = 0;
  // Of the last run: as bisect_run::how, and what it exited with, where it did.
  std::string said;
  std::optional<int> exit_code;

  bisect_ending run(const asked_try& what, const list_file& list) {
    ++runs;
    const std::string how =
        fmt::format("REPRISE_BISECT={}:{}:{}", what.works ? fmt::format("{}", *what.works) : "all",
                    what.replay.number, what.replay.step);
    const std::optional<int> status = status_of(start({how, "REPRISE_BISECT_LIST=" + list.path()}));
    const found_in_list found = look_into(list);
    const bisect_ending ended = ending_of(what, status, found);
    if (options_.on_run) options_.on_run({what.works, ended, said});
    return ended;
  }

 private:
  // In a group of its own, so that what it starts can be ended with it. Its stdout goes to stderr:
  // that of whoever searches is his own.
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
    posix_spawnattr_t how;
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&how, 0);
    pid_t made = 0;
    const int status =
        posix_spawnp(&made, arguments[0], &files, &how, arguments.data(), variables.data());
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    if (status != 0) {
      throw usage_error{
          fmt::format("bisect: '{}' cannot be started: {}; give a program, and its "
                      "arguments behind it",
                      program_.front(), std::strerror(status))};
    }
    return made;
  }

  // As waitpid gives it; none: the time was over, and it was killed.
  std::optional<int> status_of(pid_t child) const {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{options_.seconds};
    int status = 0;
    while (waitpid(child, &status, WNOHANG) == 0) {
      const int asked_to_end = signal_that_came;
      const bool is_over = std::chrono::steady_clock::now() > until;
      if (asked_to_end != 0 || is_over) {
        kill(REPRISE_MUTANT(search_leaves_what_a_run_started) ? child : -child, SIGKILL);
        waitpid(child, &status, 0);
        if (asked_to_end != 0) throw interrupted{asked_to_end};
        return std::nullopt;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
    }
    if (const int asked_to_end = signal_that_came; asked_to_end != 0) {
      throw interrupted{asked_to_end};
    }
    return status;
  }

  bisect_ending ending_of(const asked_try& what, std::optional<int> status,
                          const found_in_list& found) {
    const bool by_time = !status.has_value();
    const bool by_signal = status && WIFSIGNALED(*status);
    exit_code.reset();
    if (status && WIFEXITED(*status)) exit_code = WEXITSTATUS(*status);
    if (by_time) {
      said = fmt::format("was not done after {} s and killed", options_.seconds);
    } else if (by_signal) {
      const int signal = WTERMSIG(*status);
      said = fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
    } else if (exit_code == replay_prefix::failed) {
      said = found.failure.empty() ? "ended with 97" : found.failure;
    } else {
      said = fmt::format("ended with {}", exit_code.value_or(0));
    }
    const replay_row& in = found.under_way;
    const bool is_that =
        !what.works || (in.number == what.replay.number && in.step == what.replay.step);
    // A driver may take the process along, without a word of the device.
    const bool may_have_failed = by_time || by_signal || exit_code == replay_prefix::failed;
    if (may_have_failed && in.number != 0 && is_that) {
      const auto has_unwritten = [](const std::string& text) {
        return text.find("unwritten read") != text.npos;
      };
      const bool another = what.works && has_unwritten(said) && !has_unwritten(what.failure);
      return another ? bisect_ending::unwritten : bisect_ending::failed;
    }
    const bool outlived =
        what.works ? exit_code == replay_prefix::outlived : exit_code == 0 && found.any_passed;
    return outlived ? bisect_ending::outlived : bisect_ending::elsewhere;
  }

  const std::vector<std::string>& program_;
  const bisect_options& options_;
};

// A run of all of it in which no replay failed, and which shows no more than that.
[[noreturn]] void refuse_whole(const std::string& program, const search& by) {
  if (by.exit_code == 0) {
    throw usage_error{
        fmt::format("bisect: it cannot be searched: no step of '{}' replayed; give it arguments "
                    "with which a step without breaks is recorded",
                    program)};
  }
  throw usage_error{
      fmt::format("bisect: it cannot be searched: '{}' {} and no replay of it {}; what it said is "
                  "above",
                  program, by.said, by.exit_code ? "failed" : "was under way")};
}

[[noreturn]] void refuse_no_work(const failing_work& found) {
  throw usage_error{
      fmt::format("bisect: it cannot be searched: replay {} of step '{}' fails with nothing on "
                  "too, so it is none of the graph's works ({}); look at what runs ahead of it",
                  found.replay, found.step, found.message)};
}

// The works of the recording that failed, by kind and label.
std::vector<std::pair<std::string, std::string>> listed_works(const list_file& list,
                                                              const replay_row& failed) {
  std::vector<std::pair<std::string, std::string>> works;
  for (const auto& row : list.rows()) {
    const bool is_its = row.size() >= 2 && row[1] == failed.recording && row.back() == failed.step;
    if (!is_its) continue;
    if (row[0] == "work" && row.size() == 6) works.emplace_back(row[3], row[4]);
    if (row[0] == "recording" && row.size() == 5 && row[3] == "driven") {
      throw usage_error{fmt::format(
          "bisect: it cannot be searched: replay {} of step '{}' fails, and its graph cannot be "
          "cut, since kernels of it switch its works; set monitor_options::switch_by to another "
          "mode than device",
          failed.number, failed.step)};
    }
  }
  return works;
}

std::optional<failing_work> search_for(const std::vector<std::string>& program,
                                       const bisect_options& options) {
  search by{program, options};
  failing_work found;
  const list_file whole;
  const bisect_ending first = by.run({}, whole);
  if (first == bisect_ending::outlived) return std::nullopt;
  if (first != bisect_ending::failed) refuse_whole(program.front(), by);
  const found_in_list seen = look_into(whole);
  found.replay = seen.under_way.number;
  found.step = seen.under_way.step;
  found.message = seen.failure.empty() ? "the process " + by.said : seen.failure;
  const auto works = listed_works(whole, seen.under_way);
  found.works = works.size();
  const auto fails_with = [&](std::size_t count) {
    const list_file list;
    switch (by.run({count, seen.under_way, found.message}, list)) {
      case bisect_ending::outlived: return false;
      case bisect_ending::failed: return true;
      case bisect_ending::unwritten:
        throw usage_error{
            fmt::format("bisect: it cannot be searched: with the first {} works on, replay {} of "
                        "step '{}' is stopped by another fault, which those that are off make "
                        "({}); search on a device that does not look at what was written",
                        count, found.replay, found.step, by.said)};
      case bisect_ending::elsewhere: break;
    }
    throw usage_error{fmt::format(
        "bisect: it cannot be searched: run {} of '{}' {} without replay {} of step '{}'; give it "
        "arguments with which it always runs alike",
        by.runs, program.front(), by.said, found.replay, found.step)};
  };
  std::size_t outlived = 0;           // a prefix that the device outlives
  std::size_t failing = found.works;  // and one that it does not
  while (failing - outlived > 1) {
    const std::size_t middle = outlived + (failing - outlived) / 2;
    (fails_with(middle) ? failing : outlived) = middle;
  }
  // That the device outlives nothing at all was taken for granted where no prefix was outlived.
  if (failing == 0 ||
      (outlived == 0 && !REPRISE_MUTANT(search_takes_it_that_nothing_passes) && fails_with(0)))
    refuse_no_work(found);
  found.index = failing - 1;
  found.kind = works[found.index].first;
  found.label = works[found.index].second;
  found.runs = by.runs;
  return found;
}

}  // namespace

std::optional<failing_work> find_failing_work(const std::vector<std::string>& program,
                                              const bisect_options& options) {
  if (program.empty()) throw usage_error{"bisect: there is no program; give one behind --"};
  int came = 0;
  {
    const caught_signals while_it_searches;
    try {
      return search_for(program, options);
    } catch (const interrupted& by) {
      came = by.signal;
    }
  }
  std::raise(came);
  throw error{fmt::format("bisect: signal {} ended the search", came)};
}

}  // namespace reprise
