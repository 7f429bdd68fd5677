#include "reprise/loop/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

template <class T>
T element_at(const tensor_ref& from, std::size_t i) {
  T value;
  std::memcpy(&value, from.data + i * sizeof(T), sizeof(T));
  return value;
}

double number_at(const tensor_ref& from, std::size_t i) {
  switch (from.type) {
    case dtype::f32: return element_at<float>(from, i);
    case dtype::f16: return half_to_float(element_at<std::uint16_t>(from, i));
    case dtype::bf16: return widen(element_at<bf16>(from, i));
    case dtype::f64: return element_at<double>(from, i);
    case dtype::i32: return element_at<std::int32_t>(from, i);
    case dtype::i64: return static_cast<double>(element_at<std::int64_t>(from, i));
    case dtype::u64: return static_cast<double>(element_at<std::uint64_t>(from, i));
    case dtype::u8: return element_at<std::uint8_t>(from, i);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

bool same_bits(const tensor_ref& a, const tensor_ref& b, std::size_t i) {
  const std::size_t size = size_of(a.type);
  return std::memcmp(a.data + i * size, b.data + i * size, size) == 0;
}

double largest_magnitude(const tensor_ref& of) {
  double largest = 0;
  for (std::size_t i = 0; i < of.shape.count(); ++i) {
    const double magnitude = std::abs(number_at(of, i));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
  }
  return largest;
}

bool agree(const tensor_ref& reference, const tensor_ref& got, std::size_t i, double allowed,
           bool nan_equals_nan) {
  const double r = number_at(reference, i);
  const double x = number_at(got, i);
  if (std::isnan(r) && std::isnan(x)) return nan_equals_nan || REPRISE_MUTANT(oracle_lets_nan_pass);
  if (same_bits(reference, got, i)) return true;
  const double error = std::abs(x - r);
  return allowed > 0 && std::isfinite(error) && error <= allowed;
}

// Of two elements that do not agree.
double distance(const tensor_ref& reference, const tensor_ref& got, std::size_t i) {
  const double error = std::abs(number_at(got, i) - number_at(reference, i));
  return std::isfinite(error) ? error : infinite;
}

}  // namespace

tap_difference compare_taps(const tensor_ref& reference, const tensor_ref& got,
                            const tap_bounds& bounds) {
  if (reference.type != got.type || !(reference.shape == got.shape)) {
    return {
        .absolute = infinite,
        .why = fmt::format("it is {} {} instead of {} {}", name_of(got.type), to_string(got.shape),
                           name_of(reference.type), to_string(reference.shape))};
  }
  const std::size_t count = reference.shape.count();
  if (count == 0 && !REPRISE_MUTANT(two_empty_taps_are_parity)) {
    return {.absolute = infinite, .why = "both are empty, so nothing is compared"};
  }
  const double allowed = bounds.relative == 0
                             ? bounds.absolute
                             : bounds.absolute + bounds.relative * largest_magnitude(reference);
  tap_difference seen{.within = true, .why = {}};
  for (std::size_t i = 0; i < count; ++i) {
    if (agree(reference, got, i, allowed, bounds.nan_equals_nan)) continue;
    const double error = distance(reference, got, i);
    if (seen.within || error > seen.absolute) {
      seen.worst = i;
      seen.absolute = error;
    }
    seen.within = false;
  }
  if (!seen.within && (seen.absolute == 0 || seen.absolute == infinite)) {
    seen.why = fmt::format("element {} is {} instead of {}{}", seen.worst,
                           number_at(got, seen.worst), number_at(reference, seen.worst),
                           seen.absolute == 0 ? ", of the same value in other bits" : "");
  }
  return seen;
}

}  // namespace reprise
