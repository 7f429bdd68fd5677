// Finds a race on a machine without a GPU: `explore` runs a closure on the simulated GPU under one
// seed after the other, and tells the first that goes wrong. docs/simulator.md shows what it says.
//
// Batches are uploaded on one stream and used on another, so that both can go on at once. The first
// version forgets that the upload of the next batch must wait until this one has been used. On a
// real GPU it works in most runs.
#include <cstdio>
#include <string>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/rms_norm.hpp"
#include "reprise/platform/explore.hpp"

namespace {

using reprise::read;
using reprise::write;

constexpr int width = 64;

void normalize_batches(reprise::device_ref gpu, bool waits_for_use) {
  const reprise::stream loading{gpu};
  const reprise::stream working{gpu};
  reprise::pool memory{gpu, "example"};
  const reprise::buffer<float> batch{memory, width, loading};
  const reprise::buffer<float> gain{memory, width, working};
  const reprise::buffer<float> normal{memory, width, working};
  reprise::event loaded{gpu};
  reprise::event used{gpu};

  reprise::fill(working, write{gain}, 1.0F);
  for (int step = 0; step < 4; ++step) {
    const std::vector<float> host(width, static_cast<float>(step));
    if (waits_for_use) used.wait(loading);  // the line that the first version forgets
    reprise::copy(loading, read<float>{reprise::view<const float>{host.data(), host.size()}},
                  write{batch});
    loaded.record(loading);
    loaded.wait(working);
    reprise::launch(working, reprise::rms_norm<float, float>, read(batch), read(gain),
                    write(normal), width, 1e-5F);
    used.record(working);
  }
  working.synchronize();
}

}  // namespace

int main() {
  const auto first =
      reprise::explore(200, [](reprise::device_ref gpu) { normalize_batches(gpu, false); });
  std::printf("as it was:\n%s\n", reprise::text_of(first).c_str());

  const auto mended =
      reprise::explore(200, [](reprise::device_ref gpu) { normalize_batches(gpu, true); });
  std::printf("mended:\n%s", reprise::text_of(mended).c_str());
  return !first.failures.empty() && mended.failures.empty() ? 0 : 1;
}
