// The part of the table of op_cases.hpp that has the kernels of training: gradients, losses,
// dropout, optimizers. For this room's .cpp files.
#pragma once

#include <functional>

#include "reprise/kernel/oracle.hpp"

namespace reprise {

using see_case = std::function<void(const op_case&)>;

void show_training_op_cases(const see_case& see);

}  // namespace reprise
