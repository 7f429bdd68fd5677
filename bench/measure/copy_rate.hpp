// How fast a device moves its own memory: what floors are reckoned with.
#pragma once

#include <cstddef>

#include "reprise/device/device.hpp"

namespace reprise::bench {

struct copy_rate {
  std::size_t bytes = 0;    // of one copy
  double bytes_per_us = 0;  // read plus written; megabytes a second
};

// Copies within the device through the runtime, several in a row, timed from the first call until
// the stream was synchronised; the median of many. Takes twice `bytes`, and gives them back.
copy_rate measure_copies(device_ref device, std::size_t bytes);

}  // namespace reprise::bench
