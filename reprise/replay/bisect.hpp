// Finds the work of a recording at which a program fails: an illegal access is told of by whatever
// call comes next, long after the node that made it, and a lost device answers no questions.
//
// The program is run again and again, each time in a process of its own in which the failing step
// replays a prefix of its graph (replay_prefix.hpp), half as long or twice: at most
// 1 + log2(works) + 1 runs. A fault that depends on works that are off is found where the shortest
// failing prefix ends. Steps with breaks, and taps that the device switches, replay whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

struct bisect_options {
  // Seconds that one run may take; it counts as failed beyond them, since a device may hang.
  int seconds = 120;
  // Told of each run: how many works it replayed (none: all), and whether the device outlived it.
  std::function<void(std::optional<std::size_t> works, bool outlived)> on_run = {};
};

struct failing_work {
  std::string step;
  std::size_t index = 0;  // of the kernels, copies and fills of its graph, from 0
  std::size_t works = 0;
  std::string kind;
  std::string label;
  std::uint64_t replay = 0;  // of that recording, from 1: the one that failed
  std::string message;       // of the device, when all was replayed
  int runs = 0;
};

// `program`: its file, looked for as a shell does, and its arguments. Nothing: no replay of it
// failed. Throws usage_error when it cannot be started, or when runs of it do not replay alike.
std::optional<failing_work> find_failing_work(const std::vector<std::string>& program,
                                              const bisect_options& options = {});

}  // namespace reprise
