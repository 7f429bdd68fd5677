// Scenarios: small whole programs against a device, each about one idea, that give right results on
// every device. The simulated GPU runs them under thousands of seeds (`reprise sim`), and so shows
// that no order of works that a real GPU may choose breaks them.
//
// Beside most of them stand planted bugs: the same program with a mistake that users make. A
// simulator that does not find those would say nothing when it finds nothing.
//
// A scenario is deterministic but for what the device does, starts its threads as host_thread,
// waits by wait_until, and leaves nothing behind. Functions of this header may be called from any
// thread.
#pragma once

#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/device.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::scenarios {

struct planted_bug {
  std::string_view name;
  std::string_view says;  // one sentence: what was forgotten
  // The findings that tell it, any of them: as name_of(sim::finding_kind) spells them, or "thrown"
  // where the mistake shows in a wrong result, or a refusal, alone.
  std::vector<std::string_view> kinds;
  void (*run)(device_ref);
};

struct scenario {
  std::string_view name;
  std::string_view says;  // one sentence: what holds
  void (*run)(device_ref);
  std::vector<std::string_view> landmarks;  // that one of 200 seeds must reach
  std::vector<planted_bug> bugs;
};

// In a fixed order; names are unique.
std::span<const scenario> all_scenarios();

// Null when there is none of that name.
const scenario* find_scenario(std::string_view name);

// What a device is opened with to run them: all that Reprise brings, and a few tiny kernels.
kernel_registry scenario_kernels();

// The result of a scenario was wrong.
class wrong_result : public error {
 public:
  using error::error;
};

// Throws wrong_result, naming the line, unless the condition holds.
void require(bool condition, std::string_view what,
             std::source_location from = std::source_location::current());

}  // namespace reprise::scenarios
