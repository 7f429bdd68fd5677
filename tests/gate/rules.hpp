// What the conformance suite said of each rule on each device, from GoogleTest's own reports.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

namespace reprise::gate {

// Cases that ran on one device: {"passed": n, "failed": n, "skipped": n}. A case is of the rule in
// its suite's name ("rule_05", "rule_18_cycles") and of the device behind the last slash of its own
// ("cuda_0" is cuda).
//
//   [{"rule": 5, "says": "…", "cpu": {…}, "cuda": {…}, "faults": ["…"]}, …]
//
// A rule has a fault for each failed case, and when fewer than three cases passed on cuda.
nlohmann::json rules_of(const std::vector<nlohmann::json>& reports);

}  // namespace reprise::gate
