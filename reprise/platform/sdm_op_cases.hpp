// The cases of op_cases.hpp for the kernels of the sparse-delta-memory op: whole forwards and
// backwards, kernel by kernel, each on what the CPU bodies before it left.
#pragma once

#include <functional>

#include "reprise/kernel/oracle.hpp"

namespace reprise {

void each_sdm_op_case(const std::function<void(const op_case&)>& see);

}  // namespace reprise
