// The command `reprise`. Exit codes: 0 done, 1 a check or a device failed, 2 wrong input.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "apps/reprise/bench_cache_command.hpp"
#include "apps/reprise/bench_decode_command.hpp"
#include "apps/reprise/bench_grad_command.hpp"
#include "apps/reprise/bench_replay_command.hpp"
#include "apps/reprise/bench_sdm_command.hpp"
#include "apps/reprise/bench_sim_command.hpp"
#include "apps/reprise/bench_tap_command.hpp"
#include "apps/reprise/bench_train_command.hpp"
#include "apps/reprise/check_command.hpp"
#include "apps/reprise/decode_command.hpp"
#include "apps/reprise/denoise_command.hpp"
#include "apps/reprise/doctor_command.hpp"
#include "apps/reprise/matrix_command.hpp"
#include "apps/reprise/memory_command.hpp"
#include "apps/reprise/output.hpp"
#include "apps/reprise/records_command.hpp"
#include "apps/reprise/sim_command.hpp"
#include "apps/reprise/train_command.hpp"
#include "apps/reprise/version.hpp"
#include "reprise/base/error.hpp"

namespace {

// One line, whatever the message holds.
void complain(std::string_view what) {
  std::string line{what};
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  reprise::app::say(line);
}

// "see reprise bench replay --help": the help of the innermost verb that was given.
std::string see_help(const CLI::App& root) {
  std::string verbs = "reprise";
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    verbs += " " + at->get_name();
  }
  return fmt::format("see {} --help", verbs);
}

int run(int argc, char** argv) {
  int exit_code = 0;
  CLI::App root{"Reprise: capture a step once, replay it exactly.", "reprise"};
  root.set_version_flag("--version", reprise::app::version);
  root.require_subcommand(1);
  root.footer("Example: reprise run decode --prompt \"In the beginning \"");
  reprise::app::add_doctor(root);
  reprise::app::add_matrix(root);
  reprise::app::add_check(root, exit_code);
  CLI::App* workloads = root.add_subcommand("run", "run a workload");
  workloads->require_subcommand(1);
  workloads->footer("Example: reprise run decode --tokens 96");
  reprise::app::add_decode(*workloads, exit_code);
  reprise::app::add_denoise(*workloads, exit_code);
  reprise::app::add_memory(*workloads, exit_code);
  reprise::app::add_train(*workloads, exit_code);
  CLI::App* benches = root.add_subcommand("bench", "measure, and hold the figures to what ran");
  benches->require_subcommand(1);
  benches->footer("Example: reprise bench replay --json");
  reprise::app::add_bench_replay(*benches, exit_code);
  reprise::app::add_bench_cache(*benches, exit_code);
  reprise::app::add_bench_grad(*benches, exit_code);
  reprise::app::add_bench_decode(*benches, exit_code);
  reprise::app::add_bench_sdm(*benches, exit_code);
  reprise::app::add_bench_train(*benches, exit_code);
  reprise::app::add_bench_tap(*benches, exit_code);
  reprise::app::add_bench_sim(*benches, exit_code);
  reprise::app::add_sim(root, exit_code);
  reprise::app::add_records(root);

  try {
    root.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return root.exit(help);
  } catch (const CLI::RequiredError& wrong) {
    // CLI11 misses the verb before it looks at the word that stands in its place.
    const std::vector<std::string> unknown = root.remaining(true);
    complain(unknown.empty() ? fmt::format("{}; {}", wrong.what(), see_help(root))
                             : fmt::format("'{}' is unknown here; {}", unknown[0], see_help(root)));
    return 2;
  } catch (const CLI::ParseError& wrong) {
    complain(fmt::format("{}; {}", wrong.what(), see_help(root)));
    return 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int exit_code = run(argc, argv);
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
    complain("stdout cannot be written; give it a file or a pipe that takes it");
    return 1;
  } catch (const reprise::usage_error& wrong) {
    complain(wrong.what());
    return 2;
  } catch (const std::bad_alloc&) {
    complain("there is not enough memory for this; give smaller sizes, or free some");
    return 1;
  } catch (const std::system_error& failed) {
    // Of fmt's, once what it prints is more than stdout holds back.
    const bool on_stdout = std::ferror(stdout) != 0;
    complain(on_stdout ? "stdout cannot be written; give it a file or a pipe that takes it"
                       : failed.what());
    return 1;
  } catch (const std::exception& failed) {
    complain(failed.what());
    return 1;
  }
}
