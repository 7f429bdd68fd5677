// The manifest: every cell that was declared, of kernels and of components, and for each device of
// this machine whether it could run it, or why not. Opens nothing and creates no context.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "reprise/platform/components.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise {

struct cell_on_device {
  std::string device;
  std::string why_not;  // empty where it is available
};

struct manifest_row {
  std::string name;  // "swiglu(r:f32 r:f32 w:f32)"; a component's kind
  device_kind device = device_kind::cpu;
  std::string arch;  // empty for a component
  std::string variant;
  std::string source;
  parity_bound bound;      // of a kernel, against its generic CPU body
  bool workspace = false;  // it asks for some, by its arguments
  bool built = false;
  std::vector<cell_on_device> on;  // in the order of list_devices
};

struct manifest {
  std::vector<device_row> devices;
  std::vector<manifest_row> kernels;     // cells of one kernel together
  std::vector<manifest_row> components;  // likewise
};

manifest make_manifest(const kernel_registry& kernels, const component_registry& components,
                       std::vector<device_row> devices = list_devices());

}  // namespace reprise
