// The denoiser as a component: loaded once for a device, and shared by all loops that sample with
// it.
#pragma once

#include <filesystem>

#include "reprise/platform/components.hpp"
#include "workloads/denoise/denoiser.hpp"

namespace reprise::denoise {

// Its weights are on the device when it is made. They have a version each, so steps declare those
// (denoiser_weights::declare), and not that of the component.
struct loaded_denoiser {
  loaded_denoiser(device_ref device, const std::filesystem::path& folder);

  pool memory;
  stream loading;
  denoiser model;
};

inline constexpr component_kind<loaded_denoiser> denoiser_kind{"denoiser"};

// From `folder`, on every kind of device.
void add_components(component_registry& registry, const std::filesystem::path& folder);

}  // namespace reprise::denoise
