#include "reprise/kernel/launch.hpp"

#include <fmt/format.h>

namespace reprise {

std::span<std::byte> take_workspace(const site& at, std::size_t bytes,
                                    std::string_view kernel_name) {
  if (at.workspace.take == nullptr) {
    throw usage_error{
        fmt::format("kernel {} needs {} bytes of workspace and a plain stream lends "
                    "none; launch it inside a step",
                    kernel_name, bytes)};
  }
  return at.workspace.take(at.workspace.owner, bytes);
}

void refuse_without_kernels(device_ref device, std::string_view kernel_name) {
  throw usage_error{
      fmt::format("kernel {} has no body for {}: the device was opened without "
                  "kernels; open it with a table from resolve_kernels",
                  kernel_name, device.name())};
}

}  // namespace reprise
