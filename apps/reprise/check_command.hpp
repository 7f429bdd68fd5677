// `reprise check ops`: the kernel bodies of a device, held to those of the CPU.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the verb and what it can check; 1 becomes the exit code when a bound is passed.
void add_check(CLI::App& root, int& exit_code);

}  // namespace reprise::app
