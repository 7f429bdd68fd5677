// Runs a schedule on a device, and compares all that it gives with the host's (grad_expected.hpp)
// bit for bit, and how its calls ran with the model (grad_model.hpp).
//
// Results are copied in the order of the stream and looked at when the last call is enqueued, so
// the player orders nothing that a program would leave unordered. One thread at a time; several
// players may run beside each other on threads of their own, where their schedules have no reset.
#pragma once

#include <vector>

#include "reprise/device/device.hpp"
#include "scenarios/grad_model.hpp"
#include "scenarios/grad_schedule.hpp"

namespace reprise::scenarios {

// Throws wrong_result, naming the call and the schedule, when anything differs; what a call throws
// that should not is told in the same way.
void play(device_ref dev, const grad_schedule& schedule, model_slip slip = model_slip::none);

// The counts that the model gives each op of a schedule, without a device.
std::vector<grad_counts> predicted_counts(const grad_schedule& of);

}  // namespace reprise::scenarios
