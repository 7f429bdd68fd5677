// Order between two streams, as tests want it.
#pragma once

#include "reprise/device/device.hpp"

namespace reprise::test {

// What is enqueued on `after` from now on comes after the work of `before`.
inline void order(stream_ref before, stream_ref after) {
  event passed{before.device()};
  passed.record(before);
  passed.wait(after);
}

}  // namespace reprise::test
