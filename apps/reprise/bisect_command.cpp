#include "apps/reprise/bisect_command.hpp"

#include <fmt/format.h>

#include <memory>

#include "apps/reprise/output.hpp"
#include "reprise/replay/bisect.hpp"

namespace reprise::app {

namespace {

struct command_line {
  std::vector<std::string> program;
  int seconds = 120;
  output_options output;
};

void print(std::FILE* to, const std::optional<failing_work>& found) {
  if (!found) {
    fmt::print(to, "no replay of it failed\n");
    return;
  }
  fmt::print(to,
             "replay {} of step '{}' fails at {} '{}': number {} of {}, counted from 0 as they "
             "were captured\n  {}\n  {} runs\n",
             found->replay, found->step, found->kind, found->label, found->index, found->works,
             found->message, found->runs);
}

std::string ending(const bisect_run& one) {
  switch (one.ended) {
    case bisect_ending::outlived: return "nothing fails";
    case bisect_ending::failed: return fmt::format("fails: {}", one.how);
    case bisect_ending::unwritten:
      return fmt::format("is stopped by an unwritten read: {}", one.how);
    case bisect_ending::elsewhere: return fmt::format("no replay fails, and it {}", one.how);
  }
  return "?";
}

nlohmann::json as_json(const std::optional<failing_work>& found) {
  if (!found) return {{"found", nullptr}};
  return {{"found",
           {{"step", found->step},
            {"replay", found->replay},
            {"kind", found->kind},
            {"label", found->label},
            {"index", found->index},
            {"works", found->works},
            {"message", found->message}}},
          {"runs", found->runs}};
}

void run(const command_line& typed, const std::vector<std::string>& behind_mark, int& exit_code) {
  check_json_target(typed.output);
  std::vector<std::string> program = typed.program;
  program.insert(program.end(), behind_mark.begin(), behind_mark.end());
  int runs = 0;
  bisect_options how;
  how.seconds = typed.seconds;
  how.on_run = [&](const bisect_run& one) {
    if (typed.output.quiet) return;
    say(fmt::format("run {}, {} on: {}", ++runs,
                    one.works ? fmt::format("the first {} works", *one.works) : "all works",
                    ending(one)));
  };
  const std::optional<failing_work> found = find_failing_work(program, how);
  if (!typed.output.quiet) print(typed.output.people(), found);
  if (typed.output.json) write_json(typed.output, as_json(found));
  exit_code = found ? 1 : 0;
}

}  // namespace

void add_bisect(verb_ref root, const std::vector<std::string>& behind_mark, int& exit_code) {
  const verb_ref verb =
      root.add_subcommand("bisect", "find the work of a graph at which a program's replay fails");
  verb.footer(
      "The program runs once as it is, waiting for each replay, and then again and again with "
      "fewer\n"
      "works of the graph that failed, each time in a process of its own: some ten runs in all. "
      "What\n"
      "it prints goes to stderr. Exit code 1: found; 0: it ended with 0, and replays were seen "
      "and\n"
      "none failed; 2: it cannot be searched.\n"
      "Example: reprise bisect -- reprise run decode --device cuda:0 --tokens 40");
  const auto typed = std::make_shared<command_line>();
  verb.add_option("program", typed->program, "what to run, and its arguments, behind --")
      .option_text("PROGRAM …");
  verb.add_option("--seconds", typed->seconds, "that one run may take, or it has failed [120]")
      .option_text("N")
      .range(1, 86'400);
  add_output_options(verb, typed->output);
  verb.callback([typed, &behind_mark, &exit_code] { run(*typed, behind_mark, exit_code); });
}

}  // namespace reprise::app
