// A kernel without a body for a device, run by its CPU body: slow, and said once.
//
// What the launch declares is copied to host memory, the host waits, the generic CPU body runs on
// this thread, and what may have been written is copied back in stream order. That is no work that
// a graph could hold: inside a step it is a break; in the capture of anybody else it is refused.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/device/device.hpp"
#include "reprise/kernel/images.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise {

// A launch whose types are erased: what it declares, and how to have its arguments packed with
// their views in images. It owns all of it, since a recording runs it again at each replay.
struct cpu_launch {
  std::string kernel;
  const cell_row* cell = nullptr;  // of the device's table
  std::vector<access> accesses;
  std::function<void(const image_map&, const std::function<void(const std::byte*)>& use)> pack;
};

// Returns when the body has run. Throws usage_error where a capture is open that no step made, and
// what the body throws.
void run_on_cpu(const site& at, const cpu_launch& what);

namespace detail {

template <class... A>
void launch_on_cpu(const site& at, const kernel<void(A...)>& k, const cell_row& cell,
                   const A&... arguments) {
  cpu_launch what{k.name(), &cell, {}, {}};
  const auto declare = [&](const auto& argument) {
    if constexpr (is_access<std::remove_cvref_t<decltype(argument)>>) {
      what.accesses.push_back(access_of(argument));
      if (argument.is_direct()) throw direct_refused{argument.place(), "kernel", k.name()};
    }
  };
  (declare(arguments), ...);
  what.pack = [body = cell.body, arguments...](const image_map& to, const auto& use) {
    const packed_call<A...> packed{body, make_pack(moved(arguments, to)...)};
    use(reinterpret_cast<const std::byte*>(&packed));
  };
  run_on_cpu(at, what);
}

}  // namespace detail

}  // namespace reprise
