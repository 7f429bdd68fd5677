// Which devices are here, and opening one by name with the kernels of this build.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/counting.hpp"
#include "reprise/device/device.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise {

class trace_log;  // trace/tracing.hpp
namespace sim {
struct journal;  // sim/journal.hpp
}

// One device that the command could be asked for. A kind that is not there is a row, not an error.
struct device_row {
  std::string name;   // "cpu", "cuda:0"; "cuda" when there is none
  std::string model;  // for people; empty when not usable
  bool usable = false;
  std::string why_not;   // when it is not usable
  std::string limits;    // "132 multiprocessors, 141 GB, compute 9.0"; for people
  device_traits traits;  // of a usable one, as it would have them when it is open
};

// Opens nothing and creates no context. The cpu is always the last row.
std::vector<device_row> list_devices();

// The name that "auto" stands for on this machine: the first usable GPU, else "cpu".
std::string automatic_device();

// The CUDA version of the toolkit that this build was made with ("13.0", empty without the CUDA
// half), and the newest that the driver speaks (empty where none answers).
std::string cuda_toolkit();
std::string cuda_driver();

// Every kernel that Reprise brings.
kernel_registry builtin_kernels();

struct open_options {
  int threads = 0;                           // of CPU bodies; 0: as many as the process may use
  std::shared_ptr<call_counts> counts = {};  // where calls of the seam are counted, if anywhere
  std::shared_ptr<trace_log> trace = {};     // where they are written down, if anywhere
  std::shared_ptr<sim::journal> into = {};   // what the simulated GPU finds; null: one of its own
  bool rare_ways = false;  // its seed takes fault points too, which changes what calls are made
  std::vector<variant_wish> variants = {};  // of kernels, the most wanted first
};

// "auto", "cpu", "cuda:N", "sim:seed=N". Throws usage_error that names the device and what there is
// instead. A finding of the simulated GPU makes its next call throw; explore.hpp runs many seeds.
device open_device(std::string_view spec, const open_options& options = {},
                   const kernel_registry& kernels = builtin_kernels());

}  // namespace reprise
