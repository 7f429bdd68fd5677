#include "bench/measure/held_bytes.hpp"

#include "bench/measure/resident.hpp"
#include "reprise/device/memory_report.hpp"

namespace reprise::bench {

held_bytes held_now(stream_ref stream) {
  stream.synchronize();
  const memory_report report = report_memory(stream.device());
  held_bytes held;
  held.process = resident_bytes();
  held.device = report.device.total - report.device.free;
  held.own = report.idle_slabs + report.pinned;
  for (const pool_figures& pool : report.pools) held.own += pool.bytes;
  return held;
}

}  // namespace reprise::bench
