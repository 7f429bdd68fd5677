// launch: a kernel on a stream, with what it touches declared by its argument types.
#pragma once

#include <array>
#include <type_traits>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/kernel/cpu_fallback.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise {

// Takes `bytes` of scratch from the run that launches. Throws usage_error when a plain stream
// launches a kernel that needs a workspace.
std::span<std::byte> take_workspace(const site& at, std::size_t bytes,
                                    std::string_view kernel_name);

// For a device that was opened without kernels.
[[noreturn]] void refuse_without_kernels(device_ref device, std::string_view kernel_name);

namespace detail {

// A launch as a work, given to `use`: the borrowed parts live as long as that call.
template <class Use, class... A>
auto with_kernel_work(const site& at, const kernel<void(A...)>& k, Use&& use,
                      const A&... arguments) {
  static_assert((std::is_trivially_copyable_v<A> && ...), "arguments are views and scalars");
  static_assert(alignof(packed_call<A...>) == 16, "a capture keeps 16-byte alignment");
  const kernel_table* const table = at.stream.device().kernels();
  if (table == nullptr) [[unlikely]]
    refuse_without_kernels(at.stream.device(), k.name());
  const cell_row& cell = table->resolve(k.id(), k.name());
  const packed_call<A...> packed{cell.body, make_pack(arguments...)};

  constexpr std::size_t declared = (std::size_t{0} + ... + (is_access<A> ? 1 : 0));
  std::array<access, declared + 1> touches;  // the workspace last
  std::size_t count = 0;
  const auto declare = [&](const auto& argument) {
    if constexpr (is_access<std::remove_cvref_t<decltype(argument)>>) {
      touches[count++] = access_of(argument);
      if (argument.is_direct() && !cell.indirect) [[unlikely]]
        throw direct_refused{argument.place(), "kernel", k.name()};
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
  return use(what);
}

}  // namespace detail

// In stream order; returns before the work has run. Which body runs was decided when the device was
// opened. Throws usage_error when the device has no body for it. In a capture, the id of its node.
// A device without CPU bodies runs one for a kernel that has no other, as cpu_fallback.hpp says.
template <class... A>
node_id launch(site at, const kernel<void(A...)>& k, std::type_identity_t<A>... arguments) {
  const kernel_table* const table = at.stream.device().kernels();
  if (table != nullptr) {
    if (const cell_row* const cell = table->fallback(k.id())) [[unlikely]] {
      detail::launch_on_cpu(at, k, *cell, arguments...);
      return node_id::none;
    }
  }
  return detail::with_kernel_work(
      at, k, [&](const work& what) { return enqueue(at.stream, what); }, arguments...);
}

// Other arguments for a node that was recorded as a launch of this kernel: the workspace, where it
// needs one, comes from `at` again, and must live as long as the executable.
template <class... A>
void change(site at, executable& in, node_id node, const kernel<void(A...)>& k,
            std::type_identity_t<A>... arguments) {
  detail::with_kernel_work(
      at, k, [&](const work& what) { in.change(node, what); }, arguments...);
}

}  // namespace reprise
