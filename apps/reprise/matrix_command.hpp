// `reprise matrix`: every cell of kernels and components, and where it could run.
#pragma once

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the verb; the command runs it when it was chosen.
void add_matrix(CLI::App& root);

}  // namespace reprise::app
