// Finds the work of a recording at which a program fails: an illegal access is told of by whatever
// call comes next, long after the node that made it, and a lost device answers no questions.
//
// The program is run again and again, each time in a process of its own in which the failing replay
// runs a prefix of its graph (replay_prefix.hpp), half as long or twice: at most 1 + log2(works) +
// 1 runs. A fault that depends on works that are off is found where the shortest failing prefix
// ends. Steps with breaks replay whole and are not looked at; where kernels switch works of a graph
// (taps of mode `device`), it is named and not cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

// How one run of the program ended.
enum class bisect_ending : std::uint8_t {
  outlived,   // the device outlived what was replayed
  failed,     // in a replay: the device said so, a signal came, or the time was over
  unwritten,  // a simulated GPU stopped at a read of what works that are off would have written
  elsewhere,  // in another way, with no replay under way
};

struct bisect_run {
  std::optional<std::size_t> works;  // that the replay had on; none: all, and all replays
  bisect_ending ended = bisect_ending::elsewhere;
  std::string how;  // in words that follow those of the program: "was ended by signal 11 (…)"
};

struct bisect_options {
  // Seconds that one run may take: all its processes are killed then, and the replay that was under
  // way has failed, since a device may hang.
  int seconds = 120;
  std::function<void(const bisect_run&)> on_run = {};
};

struct failing_work {
  std::string step;
  std::size_t index = 0;  // of the kernels, copies and fills of its graph, from 0
  std::size_t works = 0;
  std::string kind;
  std::string label;
  std::uint64_t replay = 0;  // of that step, from 1: the one that failed
  std::string message;       // of the device, when all was replayed; or what ended the process
  int runs = 0;
};

// `program`: its file, looked for as a shell does, and its arguments. Nothing: it ended with 0, and
// of the replays that were seen none failed. Throws usage_error, saying what it ended with, where
// that is not so and no replay failed; and when it cannot be started, when runs of it do not replay
// alike, or when it fails with no work on too.
//
// Meanwhile SIGINT, SIGTERM and SIGHUP end the run first, with all its processes, and then do what
// they did before: one search at a time in a process.
std::optional<failing_work> find_failing_work(const std::vector<std::string>& program,
                                              const bisect_options& options = {});

}  // namespace reprise
