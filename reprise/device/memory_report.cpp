#include "reprise/device/memory_report.hpp"

#include "reprise/base/error.hpp"
#include "reprise/device/ledger.hpp"
#include "reprise/device/pool_state.hpp"
#include "reprise/device/slab_store.hpp"

namespace reprise {

memory_report report_memory(device_ref device, std::source_location from) {
  device_state& state = device.state();
  memory_report report;
  for (const auto& pool : state.ledger->pools()) {
    report.pools.push_back({pool->label(), pool->bytes(), pool->used()});
  }
  report.idle_slabs = state.slabs->idle_bytes();
  report.pinned = state.ledger->pinned_bytes();
  report.executables = state.ledger->executables();
  report.executable_nodes = state.ledger->executable_nodes();
  if (report.executable_nodes != 0) {
    try {
      report.executables_estimate = report.executable_nodes * device.api().bytes_per_node(from);
    } catch (const out_of_memory&) {
      // A card this full still gets its table, without the estimate.
    }
  }
  report.device = device.memory(from);
  return report;
}

}  // namespace reprise
