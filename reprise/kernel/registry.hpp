// Cells and their registry: who can run which kernel. And the table a device carries, in which
// every kernel is already resolved for that device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <source_location>
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
#include "reprise/kernel/parity.hpp"

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
  bool indirect = false;
  bool replaces = false;  // a cell that is there already
  bool (*available)(const device_traits&) = nullptr;
  std::string source;
  parity_bound bound;

  void (*body)() = nullptr;
  void (*invoke)(void* call, const std::byte* arguments) = nullptr;
  void (*workspace)() = nullptr;
  std::size_t (*ask_workspace)(void (*ask)(), const std::byte* arguments) = nullptr;
};

}  // namespace reprise

namespace reprise::REPRISE_BODIES {

// One body of a kernel: for `device`, from `arch` on: "generic", "avx2"; "sm_80" where it is code
// that nvcc compiled for 8.0 or later, "sm_90a" where it must be what it compiled for 9.0a
// (cuda/arch.hpp).
template <class... A>
struct cell {
  device_kind device;
  const char* arch;
  std::variant<not_built, void (*)(cpu_call&, A...), void (*)(cuda_call&, A...)> body;
  const char* variant = "default";
  // Device scratch in bytes for these arguments; the body gets it as its call's workspace().
  std::size_t (*workspace_bytes)(A...) = nullptr;
  // The body takes followed() of its views before it reads them, so it can be given direct inputs.
  bool indirect = false;
  // Whether a device that runs `arch` can use it; null: each. One that throws says no.
  bool (*available)(const device_traits&) = nullptr;
  const char* source = nullptr;  // what it is and where it comes from; null: the file that adds it
  parity_bound bound = {};       // of its outputs, against the generic CPU body
  bool replace = false;          // takes the place of the cell that is there
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
  row.replaces = c.replace;
  row.available = c.available;
  if (c.source != nullptr) row.source = c.source;
  row.bound = c.bound;
  row.id = k.id();
  row.kernel = k.text();
  row.device = c.device;
  row.arch = c.arch;
  row.variant = c.variant;
  row.indirect = c.indirect;
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

// Why a cell does not run on a device, in words; empty where it does.
std::string why_not(const cell_row& cell, const device_traits& device);
// The same of its predicate alone. A null one says yes; one that throws says no, and its reason is
// what it threw.
std::string why_unavailable(bool (*available)(const device_traits&), const device_traits& device);

// A value, filled once by explicit calls, then const.
class kernel_registry {
 public:
  // Throws usage_error when a cell is there already and the new one does not say `replace`; then
  // none was added. In a checked compile it adds the generic CPU body alone, as checked.
  template <class... A>
  void add(const kernel<void(A...)>& k,
           std::initializer_list<std::type_identity_t<cell<A...>>> cells,
           std::source_location from = std::source_location::current()) {
    std::vector<cell_row> fresh;
    for (const cell<A...>& c : cells) {
      if (is_registered(c)) fill_row(k, c, fresh.emplace_back());
    }
    add_rows(std::move(fresh), from);
  }

  std::span<const cell_row> rows() const { return rows_; }
  // The cells that `keep` says yes to.
  kernel_registry only(const std::function<bool(const cell_row&)>& keep) const;

 private:
  void add_rows(std::vector<cell_row> fresh, std::source_location from);

  std::vector<cell_row> rows_;
};

// A variant that is asked for: taken where it is available, before later wishes and "default".
struct variant_wish {
  std::string variant;
  std::string kernel = {};  // "matmul", or its text with the types; empty: every kernel
};

// Every kernel resolved for one device: along its arch chain, on each rung the variants that were
// asked for and then the default, the first cell that is built and available. Const after
// construction; lookups from any thread.
class kernel_table {
 public:
  kernel_table(const kernel_registry& registry, const device_traits& device,
               std::span<const variant_wish> wishes = {});

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

  // On a device that runs no CPU bodies, the generic CPU body of a kernel that has no body here;
  // null where there is none, or where none is needed. cpu_fallback.hpp runs it.
  const cell_row* fallback(kernel_id id) const {
    if (fallbacks_.empty()) return nullptr;
    const auto found = fallbacks_.find(id);
    return found == fallbacks_.end() ? nullptr : &found->second.cell;
  }
  // True at the first call for each kernel that falls back.
  bool first_fallback(kernel_id id) const;

  std::span<const cell_row> resolved() const { return resolved_; }
  // Of which cell each kernel got, fallbacks included: equal where every launch runs the same body.
  std::uint64_t fingerprint() const { return fingerprint_; }

 private:
  struct cpu_fallback {
    cell_row cell;
    mutable std::atomic<bool> told{false};
  };
  struct left_out {
    cell_row cell;
    std::string why;  // where its kind, arch and variant do not say it
  };

  std::size_t start(kernel_id id) const { return static_cast<std::size_t>(id) & mask_; }
  void add_fallbacks(const kernel_registry& registry);
  void add_to_fingerprint(const cell_row& row);
  [[noreturn]] void refuse(kernel_id id, std::string_view kernel_name) const;

  std::string device_name_;
  bool checked_ = false;  // the device runs checked bodies
  std::vector<cell_row> resolved_;
  std::vector<left_out> unresolved_;    // cells that do not run here, for the message
  std::vector<const cell_row*> slots_;  // open addressing, at most half full
  std::size_t mask_ = 0;
  std::map<kernel_id, cpu_fallback> fallbacks_;
  std::uint64_t fingerprint_ = 0xcbf29ce484222325u;
};

// Opens a device over an implementation of the seam with the kernels it can run.
std::shared_ptr<const kernel_table> resolve_kernels(const kernel_registry& registry,
                                                    const device_traits& device,
                                                    std::span<const variant_wish> wishes = {});

}  // namespace reprise
