// Cells and their registry: who can run which kernel. And the table a device carries, in which
// every kernel is already resolved for that device.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "reprise/device/api.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/kernel/pack.hpp"

// A CUDA body in a `.cpp`: its address, or not_built{} in a build without CUDA.
#if defined(REPRISE_HAS_CUDA) && !defined(REPRISE_CHECKED)
#define REPRISE_CUDA_BODY(f) &f
#else
#define REPRISE_CUDA_BODY(f) \
  ::reprise::not_built {}
#endif

namespace reprise {

// A body that this build left out. Its cell is listed all the same.
struct not_built {};

// The arch of cells whose bodies are checked (docs/kernels.md): only a device that compares what a
// body touches with what was declared has it in its chain.
inline constexpr const char* checked_arch = "checked";

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

}  // namespace reprise

namespace reprise::REPRISE_BODIES {

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

// Whether a cell is registered. A checked compile of a file has the same list of cells, and of it
// only the generic CPU body, which it registers as checked.
template <class... A>
bool is_registered([[maybe_unused]] const cell<A...>& c) {
#if defined(REPRISE_CHECKED)
  return c.device == device_kind::cpu && std::string_view{c.arch} == "generic" &&
         std::string_view{c.variant} == "default";
#else
  return true;
#endif
}

template <class... A>
void fill_row(const kernel<void(A...)>& k, const cell<A...>& c, cell_row& row) {
  row.id = k.id();
  row.kernel = k.text();
  row.device = c.device;
  row.arch = c.arch;
  row.variant = c.variant;
  if (const auto* cpu = std::get_if<void (*)(cpu_call&, A...)>(&c.body)) {
    row.body = reinterpret_cast<void (*)()>(*cpu);
    row.invoke = &invoke_packed<cpu_call, A...>;
  }
#if defined(REPRISE_CHECKED)
  row.arch = checked_arch;
#else
  if (const auto* cuda = std::get_if<void (*)(cuda_call&, A...)>(&c.body)) {
    row.body = reinterpret_cast<void (*)()>(*cuda);
    row.invoke = &invoke_packed<cuda_call, A...>;
  }
#endif
  row.built = row.body != nullptr;
  if (c.workspace_bytes != nullptr) {
    row.workspace = reinterpret_cast<void (*)()>(c.workspace_bytes);
    row.ask_workspace = &ask_packed<A...>;
  }
}

}  // namespace reprise::REPRISE_BODIES

namespace reprise {

// A value, filled once by explicit calls, then const.
class kernel_registry {
 public:
  // Throws usage_error when a cell is there already; then none was added. In a checked compile it
  // adds the generic CPU body alone, as checked.
  template <class... A>
  void add(const kernel<void(A...)>& k,
           std::initializer_list<std::type_identity_t<cell<A...>>> cells) {
    std::vector<cell_row> fresh;
    for (const cell<A...>& c : cells) {
      if (is_registered(c)) fill_row(k, c, fresh.emplace_back());
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
  bool checked_ = false;  // the device runs checked bodies
  std::vector<cell_row> resolved_;
  std::vector<cell_row> unresolved_;    // cells that do not run here, for the message
  std::vector<const cell_row*> slots_;  // open addressing, at most half full
  std::size_t mask_ = 0;
};

// Opens a device over an implementation of the seam with the kernels it can run.
std::shared_ptr<const kernel_table> resolve_kernels(const kernel_registry& registry,
                                                    const device_traits& device);

}  // namespace reprise
