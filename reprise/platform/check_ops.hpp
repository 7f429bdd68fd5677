// Holds every body that a device has of the built-in kernels to the generic CPU body: each cell
// that is available there, not only those that its launches take.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/kernel/oracle.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise {

struct ops_check {
  std::string device;
  std::vector<parity_result> results;     // in the order of the cases
  std::vector<std::string> not_compared;  // kernels with cells there and no case

  bool within() const;  // something was compared, and all of it is within bounds
};

// Opens the device with these kernels, and these variants of them.
using open_with = std::function<device(const kernel_registry&, const std::vector<variant_wish>&)>;
using each_case = std::function<void(const std::function<void(const op_case&)>&)>;

// One device is opened for each pair of arch and variant among its cells, so that each cell gets
// its turn; all are closed on return.
ops_check check_cells(const kernel_registry& kernels, const open_with& open,
                      const each_case& cases);

// The built-in kernels and their table of cases on a device of open_device.
ops_check check_ops(std::string_view spec);

}  // namespace reprise
