// `reprise run denoise`: the workload's options, its sheet of images, and its report.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the workload below `run`. `exit_code` becomes 1 when a run fails a check of its own.
void add_denoise(CLI::App& run, int& exit_code);

}  // namespace reprise::app
