#include "workloads/denoise/denoiser_component.hpp"

#include <memory>

namespace reprise::denoise {

loaded_denoiser::loaded_denoiser(device_ref device, const std::filesystem::path& folder)
    : memory{device, "weights"}, loading{device}, model{memory, loading, folder} {
  loading.synchronize();
}

void add_components(component_registry& registry, const std::filesystem::path& folder) {
  const auto load = [folder](device_ref on) {
    return std::make_unique<loaded_denoiser>(on, folder);
  };
  constexpr const char* source = "safetensors of run train denoiser";
  registry.add(denoiser_kind, {{.device = device_kind::cpu, .build = load, .source = source},
                               {.device = device_kind::cuda, .build = load, .source = source}});
}

}  // namespace reprise::denoise
