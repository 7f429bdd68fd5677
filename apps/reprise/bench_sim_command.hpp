// `reprise bench sim`.
#pragma once

#include <CLI/CLI.hpp>

namespace reprise::app {

// Adds the verb; what it does sets the exit code.
void add_bench_sim(CLI::App& bench, int& exit_code);

}  // namespace reprise::app
