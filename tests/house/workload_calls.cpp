#include "tests/house/workload_calls.hpp"

#include <array>

namespace reprise::house {
namespace {

// The names of device/graph.hpp, of device.hpp's events, and of the seam below both.
constexpr std::array<std::string_view, 19> names{"capture",
                                                 "begin_capture",
                                                 "end_capture",
                                                 "abandon_capture",
                                                 "capturing",
                                                 "graph",
                                                 "graph_ref",
                                                 "graph_id",
                                                 "instantiate",
                                                 "executable",
                                                 "executable_ref",
                                                 "executable_id",
                                                 "fixed_executable",
                                                 "event",
                                                 "event_ref",
                                                 "event_id",
                                                 "device_api",
                                                 "device_state",
                                                 "api"};

}  // namespace

faults capture_api_faults(const source_file& file) {
  faults found;
  for (const auto& what : includes_of(file.text)) {
    if (what.path == "reprise/device/graph.hpp" || what.path == "reprise/device/api.hpp") {
      found.push_back(fault(file, what.line, what.path + " is not for workloads"));
    }
  }
  const auto code = code_alone(file.text);
  for (const auto name : names) {
    if (const int line = line_of_word(code, name); line > 0) {
      found.push_back(fault(file, line, "a workload uses '" + std::string{name} + "'"));
    }
  }
  return found;
}

}  // namespace reprise::house
