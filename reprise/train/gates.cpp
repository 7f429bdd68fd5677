#include "reprise/train/gates.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/kernel/registry.hpp"
#include "reprise/nn/batch_norm.hpp"
#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/nn/silu.hpp"
#include "reprise/ops/linear.hpp"
#include "reprise/ops/narrowing.hpp"

namespace reprise {

std::vector<std::type_index> layer_kinds_of_nn() {
  return {typeid(nn::batch_norm), typeid(nn::dropout), typeid(nn::gelu),
          typeid(nn::layer_norm), typeid(nn::linear),  typeid(nn::silu)};
}

std::string why_not_in(const precision& in, device_ref on) {
  if (in.casts == cast_mode::none) return {};
  const kernel_table* const kernels = on.kernels();
  std::string missing;
  const auto needs = [&](const auto& kernel) {
    if (kernels != nullptr && kernels->has(kernel.id())) return;
    if (missing.empty()) missing = kernel.name();
  };
  needs(narrow_to_bf16);
  needs(linear<bf16>);
  needs(linear_input_grad<bf16>);
  needs(linear_weight_grad<bf16>);
  if (missing.empty()) return {};
  return fmt::format(
      "it casts to bf16, and {} has no body of kernel {} for that; add a cell for it, or leave "
      "the casts out",
      on.name(), missing);
}

std::string why_not_of(const nn::sequence& module) {
  return module.size() == 0 ? "it has no layer; add one" : "";
}

std::string why_not_of(const nn::sequence& module, std::span<const std::type_index> allowed) {
  for (std::size_t i = 0; i < module.size(); ++i) {
    if (std::ranges::find(allowed, module.kind_at(i)) != allowed.end()) continue;
    return fmt::format(
        "layer {} '{}' is of a kind that is not on the list of those that heads record; add its "
        "type to the list where its backward reads nothing but what its forward saved",
        i, module.layer_at(i).name());
  }
  return {};
}

}  // namespace reprise
