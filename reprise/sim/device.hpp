// The simulated GPU. `cpu`: work runs at once, in issue order, on the calling thread.
#pragma once

#include <memory>

#include "reprise/device/api.hpp"

namespace reprise::sim {

// `threads` for CPU bodies, the calling one counted; 0 takes as many as the process may use.
std::unique_ptr<device_api> open_cpu(int threads = 0);

}  // namespace reprise::sim
