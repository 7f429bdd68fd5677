// The table of cases by which the bodies of the built-in kernels are held to the CPU body: odd
// sizes, vectors with tails, padding rows. Tests and `reprise check ops` share it.
#pragma once

#include <functional>

#include "reprise/kernel/oracle.hpp"

namespace reprise {

// Shows every case once; each is made when it is its turn, and gone after it. switch_nodes is not
// among them: outside a graph it has nothing to switch.
void each_builtin_op_case(const std::function<void(const op_case&)>& see);

}  // namespace reprise
