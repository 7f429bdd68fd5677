// launch: a kernel on a stream, with what it touches declared by its argument types.
#pragma once

#include <array>
#include <type_traits>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise {

// Takes `bytes` of scratch from the run that launches. Throws usage_error when a plain stream
// launches a kernel that needs a workspace.
std::span<std::byte> take_workspace(const site& at, std::size_t bytes,
                                    std::string_view kernel_name);

// For a device that was opened without kernels.
[[noreturn]] void refuse_without_kernels(device_ref device, std::string_view kernel_name);

// In stream order; returns before the work has run. Which body runs was decided when the device was
// opened. Throws usage_error when the device has no body for it.
template <class... A>
void launch(site at, const kernel<void(A...)>& k, std::type_identity_t<A>... arguments) {
  static_assert((std::is_trivially_copyable_v<A> && ...), "arguments are views and scalars");
  static_assert(alignof(detail::packed_call<A...>) == 16, "a capture keeps 16-byte alignment");
  const kernel_table* const table = at.stream.device().kernels();
  if (table == nullptr) [[unlikely]]
    refuse_without_kernels(at.stream.device(), k.name());
  const cell_row& cell = table->resolve(k.id(), k.name());
  const detail::packed_call<A...> packed{cell.body, detail::make_pack(arguments...)};

  constexpr std::size_t declared = (std::size_t{0} + ... + (is_access<A> ? 1 : 0));
  std::array<access, declared + 1> touches;  // the workspace last
  std::size_t count = 0;
  const auto declare = [&](const auto& argument) {
    if constexpr (is_access<std::remove_cvref_t<decltype(argument)>>) {
      touches[count++] = access_of(argument);
    }
  };
  (declare(arguments), ...);

  work what;
  what.kind = work_kind::kernel;
  what.label = k.name();
  what.place = at.place;
  what.kernel = {cell.invoke, reinterpret_cast<const std::byte*>(&packed), sizeof packed, {}};
  if (cell.workspace != nullptr) {
    const std::size_t bytes = cell.ask_workspace(cell.workspace, what.kernel.arguments);
    if (bytes != 0) {
      what.kernel.workspace = take_workspace(at, bytes, k.name());
      touches[count++] = {what.kernel.workspace.data(), bytes, true};
    }
  }
  what.accesses = {touches.data(), count};
  enqueue(at.stream, what);
}

}  // namespace reprise
