#include "reprise/kernel/registry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

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

std::string why_unavailable(bool (*available)(const device_traits&), const device_traits& device) {
  if (available == nullptr) return {};
  try {
    return available(device) ? "" : "its predicate says no";
  } catch (const std::exception& thrown) {
    if (REPRISE_MUTANT(throwing_predicate_says_yes)) return {};
    return fmt::format("its predicate threw: {}", thrown.what());
  } catch (...) {
    return "its predicate threw something that is no exception";
  }
}

std::string why_not(const cell_row& cell, const device_traits& device) {
  if (cell.device != device.bodies) return fmt::format("it is for {}", name_of(cell.device));
  if (!cell.built) return "not built";
  const auto& chain = device.arch_chain;
  if (std::ranges::find(chain, cell.arch) == chain.end()) {
    if (cell.arch == checked_arch) return "only simulated GPUs run checked bodies";
    return fmt::format(
        "it needs {}, and here is {}", cell.arch,
        device.arch_note.empty() ? fmt::format("{}", fmt::join(chain, ", ")) : device.arch_note);
  }
  return why_unavailable(cell.available, device);
}

void kernel_registry::add_rows(std::vector<cell_row> fresh, std::source_location from) {
  std::vector<cell_row> all = rows_;
  for (cell_row& row : fresh) {
    if (row.source.empty()) row.source = file_of(from);
    const auto there = std::ranges::find_if(all, [&](const cell_row& r) {
      return r.id == row.id && r.device == row.device && r.arch == row.arch &&
             r.variant == row.variant;
    });
    if (there == all.end()) {
      all.push_back(std::move(row));
    } else if (row.replaces || REPRISE_MUTANT(cells_are_replaced_in_silence)) {
      *there = std::move(row);
    } else {
      throw usage_error{
          fmt::format("kernel {}: the cell ({}, {}, {}) is registered already; register it once, "
                      "say replace, or give it a variant name of its own",
                      row.kernel, name_of(row.device), row.arch, row.variant)};
    }
  }
  rows_ = std::move(all);
}

kernel_registry kernel_registry::only(const std::function<bool(const cell_row&)>& keep) const {
  kernel_registry some;
  std::ranges::copy_if(rows_, std::back_inserter(some.rows_), keep);
  return some;
}

namespace {

// "matmul" of "matmul(r:f32 r:bf16 w:f32)".
std::string_view name_in(std::string_view text) {
  return text.substr(0, text.find('('));
}

// How far down the list of what was asked for a variant is, "default" behind them all; nothing for
// one that nobody asked for.
std::optional<std::size_t> rank_of(const cell_row& row, std::span<const variant_wish> wishes) {
  for (std::size_t i = 0; i < wishes.size(); ++i) {
    const variant_wish& wish = wishes[i];
    const bool meant =
        wish.kernel.empty() || wish.kernel == row.kernel || wish.kernel == name_in(row.kernel);
    if (meant && wish.variant == row.variant) return i;
  }
  if (row.variant == "default" || REPRISE_MUTANT(variants_are_taken_unasked)) return wishes.size();
  return std::nullopt;
}

}  // namespace

kernel_table::kernel_table(const kernel_registry& registry, const device_traits& device,
                           std::span<const variant_wish> wishes)
    : device_name_{device.name},
      checked_{std::ranges::find(device.arch_chain, checked_arch) != device.arch_chain.end()} {
  // The best cell of a kernel is on the earliest rung of the chain; there, the variant that was
  // asked for first.
  using place = std::pair<std::size_t, std::size_t>;
  std::map<kernel_id, std::pair<place, const cell_row*>> best;
  const auto& chain = device.arch_chain;
  for (const cell_row& row : registry.rows()) {
    const auto rank = rank_of(row, wishes);
    const auto rung = std::ranges::find(chain, row.arch);
    std::string why = why_not(row, device);
    if (!rank || !why.empty()) {
      // That it is for another device, arch or wish is seen by its name.
      const bool meant = rank && row.device == device.bodies && rung != chain.end();
      if (!row.built) why = "not built";
      unresolved_.push_back({row, meant || !row.built ? std::move(why) : ""});
      continue;
    }
    const place here{rung - chain.begin(), *rank};
    const auto [at, fresh] = best.try_emplace(row.id, here, &row);
    if (!fresh && (here < at->second.first) != REPRISE_MUTANT(worst_body_is_taken))
      at->second = {here, &row};
  }
  for (const auto& [id, choice] : best) {
    resolved_.push_back(*choice.second);
    add_to_fingerprint(*choice.second);
  }

  slots_.assign(std::bit_ceil(2 * resolved_.size() + 2), nullptr);
  mask_ = slots_.size() - 1;
  for (const cell_row& row : resolved_) {
    std::size_t at = start(row.id);
    while (slots_[at] != nullptr) at = (at + 1) & mask_;
    slots_[at] = &row;
  }
  if (device.bodies != device_kind::cpu) add_fallbacks(registry);
}

void kernel_table::add_fallbacks(const kernel_registry& registry) {
  for (const cell_row& row : registry.rows()) {
    const bool reference = row.device == device_kind::cpu && row.arch == "generic" &&
                           row.variant == "default" && row.built;
    if (reference && !has(row.id)) fallbacks_[row.id].cell = row;
  }
  for (const auto& [id, one] : fallbacks_) add_to_fingerprint(one.cell);
}

bool kernel_table::first_fallback(kernel_id id) const {
  return !fallbacks_.at(id).told.exchange(true);
}

// Kernels come in the order of their ids, so that the order of registration says nothing.
void kernel_table::add_to_fingerprint(const cell_row& row) {
  const auto add = [&](std::string_view text) {
    for (const char c : text)
      fingerprint_ = detail::mix(fingerprint_, static_cast<unsigned char>(c));
    fingerprint_ = detail::mix(fingerprint_, 0x100);  // no letter: the end
  };
  fingerprint_ = detail::mix(fingerprint_, static_cast<std::uint64_t>(row.id));
  add(name_of(row.device));
  add(row.arch);
  add(row.variant);
}

void kernel_table::refuse(kernel_id id, std::string_view kernel_name) const {
  std::string cells;
  for (const auto& [row, why] : unresolved_) {
    if (row.id != id || row.arch == checked_arch) continue;  // which no other device could run
    const std::string variant = row.variant == "default" ? "" : " " + row.variant;
    cells += fmt::format("{}{} {}{}{}", cells.empty() ? "" : ", ", name_of(row.device), row.arch,
                         variant, why.empty() ? "" : fmt::format(" ({})", why));
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
                                                    const device_traits& device,
                                                    std::span<const variant_wish> wishes) {
  return std::make_shared<const kernel_table>(registry, device, wishes);
}

}  // namespace reprise
