#include "reprise/kernel/registry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

std::string kernel_text(const char* name, std::span<const std::uint64_t> argument_words) {
  std::string text = name;
  text += '(';
  const char* gap = "";
  for (const std::uint64_t word : argument_words) {
    const std::uint64_t access = word >> 8;
    if (access > 3) continue;  // scalars say nothing that tells kernels apart for people
    const char* letters[] = {"", "r", "w", "rw"};
    text += fmt::format("{}{}:{}", gap, letters[access], name_of(static_cast<dtype>(word & 0xff)));
    gap = " ";
  }
  return text + ')';
}

void kernel_registry::add_rows(std::vector<cell_row> fresh) {
  std::vector<cell_row> all = rows_;
  for (cell_row& row : fresh) {
    const bool there = std::ranges::any_of(all, [&](const cell_row& r) {
      return r.id == row.id && r.device == row.device && r.arch == row.arch &&
             r.variant == row.variant;
    });
    if (!there) {
      all.push_back(std::move(row));
      continue;
    }
    throw usage_error{
        fmt::format("kernel {}: the cell ({}, {}, {}) is registered already; register "
                    "it once, or give it a variant name of its own",
                    row.kernel, name_of(row.device), row.arch, row.variant)};
  }
  rows_ = std::move(all);
}

kernel_table::kernel_table(const kernel_registry& registry, const device_traits& device)
    : device_name_{device.name},
      checked_{std::ranges::find(device.arch_chain, checked_arch) != device.arch_chain.end()} {
  // The best cell of a kernel is the one earliest in the device's arch chain.
  std::map<kernel_id, std::pair<std::size_t, const cell_row*>> best;
  const auto& chain = device.arch_chain;
  for (const cell_row& row : registry.rows()) {
    const auto rung = static_cast<std::size_t>(std::ranges::find(chain, row.arch) - chain.begin());
    const bool runs = row.device == device.bodies && row.built &&
                      (row.variant == "default" || REPRISE_MUTANT(variants_are_taken_unasked)) &&
                      rung < chain.size();
    if (!runs) {
      unresolved_.push_back(row);
      continue;
    }
    const auto [at, fresh] = best.try_emplace(row.id, rung, &row);
    if (!fresh && (rung < at->second.first) != REPRISE_MUTANT(worst_body_is_taken))
      at->second = {rung, &row};
  }
  for (const auto& [id, choice] : best) resolved_.push_back(*choice.second);

  slots_.assign(std::bit_ceil(2 * resolved_.size() + 2), nullptr);
  mask_ = slots_.size() - 1;
  for (const cell_row& row : resolved_) {
    std::size_t at = start(row.id);
    while (slots_[at] != nullptr) at = (at + 1) & mask_;
    slots_[at] = &row;
  }
}

void kernel_table::refuse(kernel_id id, std::string_view kernel_name) const {
  std::string cells;
  for (const cell_row& row : unresolved_) {
    if (row.id != id || row.arch == checked_arch) continue;  // which no other device could run
    const std::string variant = row.variant == "default" ? "" : " " + row.variant;
    cells += fmt::format("{}{} {}{}{}", cells.empty() ? "" : ", ", name_of(row.device), row.arch,
                         variant, row.built ? "" : " (not built)");
  }
  if (cells.empty()) cells = "none";
  if (checked_) {
    throw usage_error{
        fmt::format("kernel {} has no checked body for {}: it has {}; give its .cpp to "
                    "reprise_checked_bodies and register what that adds (docs/kernels.md)",
                    kernel_name, device_name_, cells)};
  }
  throw usage_error{
      fmt::format("kernel {} has no body for {}: it has {}; add a cell for it, or open "
                  "another device",
                  kernel_name, device_name_, cells)};
}

std::shared_ptr<const kernel_table> resolve_kernels(const kernel_registry& registry,
                                                    const device_traits& device) {
  return std::make_shared<const kernel_table>(registry, device);
}

}  // namespace reprise
