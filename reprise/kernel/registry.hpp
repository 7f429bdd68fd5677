// Cells and their registry: who can run which kernel. And the table a device carries, in which
// every kernel is already resolved for that device.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "reprise/device/api.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/kernel/pack.hpp"

// A CUDA body in a `.cpp`: its address, or not_built{} in a build without CUDA.
#if defined(REPRISE_HAS_CUDA)
#define REPRISE_CUDA_BODY(f) &f
#else
#define REPRISE_CUDA_BODY(f) \
  ::reprise::not_built {}
#endif

namespace reprise {

class cuda_call;  // cuda/call.cuh

// A body that this build left out. Its cell is listed all the same.
struct not_built {};

// One body of a kernel: for `device`, from `arch` on ("generic", "avx2", "sm_80", "sm_90a").
template <class... A>
struct cell {
  device_kind device;
  const char* arch;
  std::variant<not_built, void (*)(cpu_call&, A...), void (*)(cuda_call&, A...)> body;
  const char* variant = "default";
  // Device scratch in bytes for these arguments; the body gets it as its call's workspace().
  std::size_t (*workspace_bytes)(A...) = nullptr;
};

// A cell with its types erased; what tables hold and lists show.
struct cell_row {
  kernel_id id{};
  std::string kernel;
  device_kind device = device_kind::cpu;
  std::string arch;
  std::string variant;
  bool built = false;

  void (*body)() = nullptr;
  void (*invoke)(void* call, const std::byte* arguments) = nullptr;
  void (*workspace)() = nullptr;
  std::size_t (*ask_workspace)(void (*ask)(), const std::byte* arguments) = nullptr;
};

// A value, filled once by explicit calls, then const.
class kernel_registry {
 public:
  // Throws usage_error when a cell is there already; then none was added.
  template <class... A>
  void add(const kernel<void(A...)>& k,
           std::initializer_list<std::type_identity_t<cell<A...>>> cells) {
    std::vector<cell_row> fresh;
    for (const cell<A...>& c : cells) {
      cell_row& row = fresh.emplace_back();
      row.id = k.id();
      row.kernel = k.text();
      row.device = c.device;
      row.arch = c.arch;
      row.variant = c.variant;
      if (const auto* cpu = std::get_if<void (*)(cpu_call&, A...)>(&c.body)) {
        row.body = reinterpret_cast<void (*)()>(*cpu);
        row.invoke = &detail::invoke<cpu_call, A...>;
      } else if (const auto* cuda = std::get_if<void (*)(cuda_call&, A...)>(&c.body)) {
        row.body = reinterpret_cast<void (*)()>(*cuda);
        row.invoke = &detail::invoke<cuda_call, A...>;
      }
      row.built = row.body != nullptr;
      if (c.workspace_bytes != nullptr) {
        row.workspace = reinterpret_cast<void (*)()>(c.workspace_bytes);
        row.ask_workspace = &detail::ask_workspace<A...>;
      }
    }
    add_rows(std::move(fresh));
  }

  std::span<const cell_row> rows() const { return rows_; }

 private:
  void add_rows(std::vector<cell_row> fresh);

  std::vector<cell_row> rows_;
};

// Every kernel resolved for one device: along its arch chain, the default variant, the first cell
// that is built. Const after construction; lookups from any thread.
class kernel_table {
 public:
  kernel_table(const kernel_registry& registry, const device_traits& device);

  // Throws usage_error, naming the kernel, the device and what cells there are.
  const cell_row& resolve(kernel_id id, std::string_view kernel_name) const {
    for (std::size_t at = start(id);; at = (at + 1) & mask_) {
      const cell_row* row = slots_[at];
      if (row == nullptr) refuse(id, kernel_name);
      if (row->id == id) return *row;
    }
  }

  // Whether `resolve` would find a body.
  bool has(kernel_id id) const {
    for (std::size_t at = start(id); slots_[at] != nullptr; at = (at + 1) & mask_) {
      if (slots_[at]->id == id) return true;
    }
    return false;
  }

  std::span<const cell_row> resolved() const { return resolved_; }

 private:
  std::size_t start(kernel_id id) const { return static_cast<std::size_t>(id) & mask_; }
  [[noreturn]] void refuse(kernel_id id, std::string_view kernel_name) const;

  std::string device_name_;
  std::vector<cell_row> resolved_;
  std::vector<cell_row> unresolved_;    // kernels without a cell here, for the message
  std::vector<const cell_row*> slots_;  // open addressing, at most half full
  std::size_t mask_ = 0;
};

// Opens a device over an implementation of the seam with the kernels it can run.
std::shared_ptr<const kernel_table> resolve_kernels(const kernel_registry& registry,
                                                    const device_traits& device);

}  // namespace reprise
