#include "reprise/loop/oracle.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reprise {

namespace {

tensor_ref tensor_of(const tap& from) {
  return {const_cast<std::byte*>(from.bytes.data()), from.type, from.shape,  // only ever read
          contiguous_strides(from.shape)};
}

// The tap at `i` of a step, or null.
const tap* tap_at(const tapped_step& from, std::size_t i) {
  return i < from.taps.size() ? &from.taps[i] : nullptr;
}

std::optional<divergence> first_in_step(std::size_t number, const tapped_step& reference,
                                        const tapped_step& other, const parity_bound& within,
                                        nan_rule nans) {
  divergence found{.step = number, .name = reference.name, .tap = {}, .what = {}};
  if (reference.name != other.name) {
    found.what = fmt::format("the other run has step '{}' here", other.name);
    return found;
  }
  const std::size_t count = std::max(reference.taps.size(), other.taps.size());
  for (std::size_t i = 0; i < count; ++i) {
    const tap* const r = tap_at(reference, i);
    const tap* const x = tap_at(other, i);
    found.tap = (r != nullptr ? r : x)->name;
    if (r == nullptr || x == nullptr || r->name != x->name) {
      found.what = r == nullptr   ? "the reference has no such tap"
                   : x == nullptr ? "the other run has no such tap"
                                  : fmt::format("the other run has tap '{}' here", x->name);
      return found;
    }
    const parity_gap seen = compare(tensor_of(*r), tensor_of(*x), within, nans);
    if (seen.within) continue;
    found.error = seen.absolute;
    found.what = !seen.why.empty()
                     ? seen.why
                     : fmt::format("element {} is {} away", seen.worst, seen.absolute);
    return found;
  }
  return std::nullopt;
}

}  // namespace

std::string divergence::text() const {
  if (name.empty()) return what;
  const std::string where = tap.empty() ? std::string{} : fmt::format(", tap '{}'", tap);
  return fmt::format("step {} '{}'{}: {}", step, name, where, what);
}

std::optional<divergence> first_divergence(std::span<const tapped_step> reference,
                                           std::span<const tapped_step> other,
                                           const parity_bound& within, nan_rule nans) {
  const std::size_t count = std::max(reference.size(), other.size());
  bool compared = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= reference.size() || i >= other.size()) {
      const bool longer = i >= reference.size();
      return divergence{
          .step = i,
          .name = (longer ? other : reference)[i].name,
          .tap = {},
          .what = longer ? "the reference has no such step" : "the other run has no such step"};
    }
    if (auto found = first_in_step(i, reference[i], other[i], within, nans)) return found;
    compared = compared || !reference[i].taps.empty();
  }
  if (compared) return std::nullopt;
  return divergence{.step = 0, .name = {}, .tap = {}, .what = "no tap was compared"};
}

}  // namespace reprise
