// A capture that is open while another thread does something; for cases about other threads.
#pragma once

#include <latch>
#include <thread>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::test {

// Runs `beside` on a thread of its own while a capture on `on` is open between two of its works.
template <class Beside>
graph captured_beside(stream_ref on, const buffer<int>& x, Beside&& beside) {
  std::latch opened{1};
  std::thread other{[&] {
    opened.wait();
    beside();
  }};
  try {
    graph made = capture(on, [&](stream_ref c) {
      fill(c, write<int>{x}, 1);
      opened.count_down();
      other.join();
      fill(c, write<int>{x}, 2);
    });
    return made;
  } catch (...) {
    if (!opened.try_wait()) opened.count_down();
    if (other.joinable()) other.join();
    throw;
  }
}

}  // namespace reprise::test
