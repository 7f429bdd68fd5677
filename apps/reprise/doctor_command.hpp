// `reprise doctor`: what is here, and what would be used.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace reprise::app {

// Adds the verb; the command runs it when it was chosen.
void add_doctor(CLI::App& root);

}  // namespace reprise::app
