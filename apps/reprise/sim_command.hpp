// `reprise sim`: scenarios on the simulated GPU, under one seed after the other.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the verb. `exit_code` becomes 1 when a scenario failed or a planted bug was not found.
void add_sim(CLI::App& root, int& exit_code);

}  // namespace reprise::app
