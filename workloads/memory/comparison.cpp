#include "workloads/memory/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "reprise/base/mutant.hpp"

namespace reprise::memory {

namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// As parameter_set::values lies; what lies between two parameters counts as the first one's.
std::string difference_by_name(std::string_view kind, const nn::parameter_set& set,
                               const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) {
    return {};
  }
  const std::span all{a};
  const std::span other{b};
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::size_t begin = set.begin(i);
    const std::size_t end = i + 1 < set.size() ? set.begin(i + 1) : set.elements();
    std::string found =
        difference(fmt::format("{} '{}'", kind, set.name(i)), all.subspan(begin, end - begin),
                   other.subspan(begin, end - begin));
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

std::string difference(std::string_view what, std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) {
    return fmt::format("{}: {} elements are not {}", what, a.size(), b.size());
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (same_bits(a[i], b[i])) continue;
    return fmt::format("{}, element {}: {} (0x{:08x}) is not {} (0x{:08x})", what, i, a[i],
                       std::bit_cast<std::uint32_t>(a[i]), b[i],
                       std::bit_cast<std::uint32_t>(b[i]));
  }
  return {};
}

std::string difference(const training& a, const training& b) {
  const training_state one = a.state();
  const training_state other = b.state();
  const nn::parameter_set& set = a.parameters();
  std::string found = difference_by_name("weight", set, one.weights, other.weights);
  if (REPRISE_MUTANT(memory_moments_are_not_compared)) return found;
  if (found.empty()) {
    found = difference_by_name("first moment of", set, one.first_moments, other.first_moments);
  }
  if (found.empty()) {
    found = difference_by_name("second moment of", set, one.second_moments, other.second_moments);
  }
  if (found.empty() && one.updates != other.updates) {
    found = fmt::format("updates of the optimizer: {} are not {}", one.updates, other.updates);
  }
  return found;
}

std::string difference(const sample_result& a, const sample_result& b) {
  const auto place = std::ranges::mismatch(a.text, b.text);
  if (place.in1 != a.text.end() || place.in2 != b.text.end()) {
    return fmt::format("sample, byte {}: the texts differ", place.in1 - a.text.begin());
  }
  for (std::size_t i = 0; i < a.banks.size(); ++i) {
    const auto byte = std::ranges::mismatch(a.banks[i], b.banks.at(i));
    if (byte.in1 == a.banks[i].end() && byte.in2 == b.banks[i].end()) continue;
    return fmt::format("sample, bank of layer {}, byte {}: the bits differ", i,
                       byte.in1 - a.banks[i].begin());
  }
  return {};
}

}  // namespace reprise::memory
