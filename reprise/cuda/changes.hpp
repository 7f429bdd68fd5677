// What was changed in an executable, given to a native one. For this room's .cpp files.
#pragma once

#include "reprise/cuda/records.hpp"

namespace reprise::cuda {

// All that was changed since the executable was made, on top of what `current` says, and what is
// switched off. Under the executable's guard.
cudaError_t apply_changes(cudaGraphExec_t native, const executable_record& executable);

}  // namespace reprise::cuda
