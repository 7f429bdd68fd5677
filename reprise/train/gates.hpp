// What a part looks at before it records in a run: facts, and no calls of the device. Each says why
// not in words, with a remedy; empty: it may.
#pragma once

#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/grad/precision.hpp"
#include "reprise/nn/sequence.hpp"

namespace reprise {

// The layers of reprise/nn that graphed_heads records.
std::vector<std::type_index> layer_kinds_of_nn();

inline constexpr const char* observed_already =
    "somebody observes its marks; take the observer off and start the next run";

// Casts are asked for, and the device lacks the body of a kernel that casts need.
std::string why_not_in(const precision& in, device_ref on);
// There is no layer.
std::string why_not_of(const nn::sequence& module);
// A layer is of a kind that is not on the list.
std::string why_not_of(const nn::sequence& module, std::span<const std::type_index> allowed);

}  // namespace reprise
