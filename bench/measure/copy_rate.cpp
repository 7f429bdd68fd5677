#include "bench/measure/copy_rate.hpp"

#include <utility>
#include <vector>

#include "bench/measure/spread.hpp"
#include "reprise/base/clock.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"

namespace reprise::bench {

namespace {

constexpr int copies_in_a_row = 4;
constexpr int repeats = 9;

}  // namespace

copy_rate measure_copies(device_ref device, std::size_t bytes) {
  std::vector<double> us;
  {
    stream work{device};
    pool memory{device, "copies"};
    const block from{memory, bytes, work};
    const block to{memory, bytes, work};
    fill_bytes(work, from.data(), bytes, 0x5a, 1);
    copy_bytes(work, from.data(), to.data(), bytes);  // pages and clocks are warm after it
    for (int i = 0; i < repeats; ++i) {
      work.synchronize();
      const double start = now_us();
      for (int c = 0; c < copies_in_a_row; ++c) {
        copy_bytes(work, from.data(), to.data(), bytes);
      }
      work.synchronize();
      us.push_back((now_us() - start) / copies_in_a_row);
    }
  }
  device.trim();
  return {bytes, 2.0 * static_cast<double>(bytes) / spread_of(std::move(us)).median};
}

}  // namespace reprise::bench
