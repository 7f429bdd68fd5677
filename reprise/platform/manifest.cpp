#include "reprise/platform/manifest.hpp"

#include <algorithm>
#include <utility>

namespace reprise {

namespace {

template <class Row>
std::vector<cell_on_device> on_each(const std::vector<device_row>& devices, const Row& cell) {
  std::vector<cell_on_device> on;
  for (const device_row& device : devices) {
    on.push_back({device.name,
                  device.usable ? why_not(cell, device.traits) : "not usable: " + device.why_not});
  }
  return on;
}

void group_by_name(std::vector<manifest_row>& rows) {
  std::ranges::stable_sort(rows, {}, &manifest_row::name);
}

}  // namespace

manifest make_manifest(const kernel_registry& kernels, const component_registry& components,
                       std::vector<device_row> devices) {
  manifest made;
  for (const cell_row& cell : kernels.rows()) {
    made.kernels.push_back({cell.kernel, cell.device, cell.arch, cell.variant, cell.source,
                            cell.bound, cell.workspace != nullptr, cell.built,
                            on_each(devices, cell)});
  }
  for (const component_row& cell : components.rows()) {
    made.components.push_back({cell.kind,
                               cell.device,
                               "",
                               cell.variant,
                               cell.source,
                               {},
                               false,
                               cell.built,
                               on_each(devices, cell)});
  }
  group_by_name(made.kernels);
  group_by_name(made.components);
  made.devices = std::move(devices);
  return made;
}

}  // namespace reprise
