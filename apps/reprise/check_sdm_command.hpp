// `reprise check sdm`: the sparse-delta-memory op, held to case files.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds it to the verb `check`; 1 becomes the exit code when a tolerance is passed.
void add_check_sdm(CLI::App& check, int& exit_code);

}  // namespace reprise::app
