// A capture that is open while another thread does something; for cases about other threads.
#pragma once

#include <atomic>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/device/host_thread.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::test {

// Runs `beside` on a thread of its own while a capture on `on` is open between two of its works.
template <class Beside>
graph captured_beside(stream_ref on, const buffer<int>& x, Beside&& beside) {
  std::atomic<bool> opened{false};
  host_thread other{on.device(), [&] {
                      wait_until(on.device(), [&] { return opened.load(); });
                      beside();
                    }};
  try {
    return capture(on, [&](stream_ref c) {
      fill(c, write<int>{x}, 1);
      opened = true;
      other.join();
      fill(c, write<int>{x}, 2);
    });
  } catch (...) {
    opened = true;
    throw;
  }
}

}  // namespace reprise::test
