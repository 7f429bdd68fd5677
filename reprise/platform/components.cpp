#include "reprise/platform/components.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

std::string why_not(const component_row& cell, const device_traits& device) {
  if (cell.device != device.bodies) return fmt::format("it is for {}", name_of(cell.device));
  if (!cell.built) return "not built";
  return why_unavailable(cell.available, device);
}

void component_registry::add_rows(std::vector<component_row> fresh, std::source_location from) {
  std::vector<component_row> all = rows_;
  for (component_row& row : fresh) {
    if (row.source.empty()) row.source = file_of(from);
    const auto there = std::ranges::find_if(all, [&](const component_row& r) {
      return r.kind == row.kind && r.type == row.type && r.device == row.device &&
             r.variant == row.variant;
    });
    if (there == all.end()) {
      all.push_back(std::move(row));
    } else if (row.replaces) {
      *there = std::move(row);
    } else {
      throw usage_error{fmt::format(
          "component {}: the cell ({}, {}) is registered already; register it once, say "
          "replace, or give it a variant name of its own",
          row.kind, name_of(row.device), row.variant)};
    }
  }
  rows_ = std::move(all);
}

component_registry builtin_components() {
  return {};
}

component_store::found component_store::find(std::string_view kind, std::type_index type,
                                             std::span<const device_ref> devices,
                                             std::string_view variant, const builder& owners) {
  std::string cells;
  for (const device_ref& on : devices) {
    for (const std::string_view wanted : {variant, std::string_view{"default"}}) {
      for (const component_row& row : registry_.rows()) {
        if (row.kind != kind || row.type != type || row.variant != wanted) continue;
        if (why_not(row, on.traits()).empty()) {
          return built({nullptr, false, &on, row.variant, row.source, false}, kind, type,
                       row.build);
        }
      }
    }
  }
  if (owners && !devices.empty()) {
    return built(
        {nullptr, false, &devices.front(), std::string{variant}, "its owner's factory", true}, kind,
        type, owners);
  }
  for (const component_row& row : registry_.rows()) {
    if (row.kind != kind || row.type != type) continue;
    const std::string why =
        devices.empty() ? "" : " (" + why_not(row, devices.front().traits()) + ")";
    cells +=
        fmt::format("{}{} {}{}", cells.empty() ? "" : ", ", name_of(row.device), row.variant, why);
  }
  throw usage_error{
      fmt::format("component {} of variant {} can be built on none of {} devices: it has {}; add a "
                  "cell for one of them, or give a factory",
                  kind, variant, devices.size(), cells.empty() ? "no cells" : cells)};
}

// A builder may ask this store for other components: nothing is held across the call.
component_store::found component_store::built(found here, std::string_view kind,
                                              std::type_index type, const builder& build) {
  const key named{std::string{kind}, type, &here.on->state(), here.variant, here.by_owner};
  if (const auto there = objects_.find(named);
      there != objects_.end() && !REPRISE_MUTANT(components_are_built_anew)) {
    here.object = there->second;
    return here;
  }
  here.object = build(*here.on);
  if (here.object == nullptr) {
    throw usage_error{fmt::format("component {}: {} built nothing on {}; it must return an object",
                                  kind, here.source, here.on->name())};
  }
  here.fresh = true;
  objects_[named] = here.object;
  return here;
}

}  // namespace reprise
