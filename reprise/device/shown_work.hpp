// What this thread's watches see of works that do not pass the door. For this room's .cpp files.
#pragma once

#include "reprise/device/device.hpp"

namespace reprise {

// To all watches, the innermost first.
void show_to_watches(stream_ref stream, const work& what);

}  // namespace reprise
