// A part of a run, as training_run and graphed_network take it; null, or none at all, is a part
// that is missing.
#pragma once

#include <variant>

namespace reprise {

class graphed_network;
class graphed_heads;
class graphed_loss;

using run_part = std::variant<std::monostate, graphed_network*, graphed_heads*, graphed_loss*>;

}  // namespace reprise
