#include "reprise/kernel/parity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>

#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

struct half {
  std::uint16_t bits;
};

double value_of(half x) {
  return half_to_float(x.bits);
}
double value_of(bf16 x) {
  return widen(x);
}
template <class T>
  requires std::is_arithmetic_v<T>
double value_of(T x) {
  return static_cast<double>(x);
}

template <class T>
T element_at(const tensor_ref& tensor, std::size_t i) {
  T value;
  std::memcpy(&value, tensor.data + i * sizeof value, sizeof value);
  return value;
}

// Above 2^53 neighbouring integers are one double: they are subtracted first.
template <class T>
double distance(T a, T b, nan_rule nans) {
  if constexpr (std::is_integral_v<T>) {
    using wide = std::make_unsigned_t<T>;
    const auto apart = a > b ? static_cast<wide>(a) - static_cast<wide>(b)
                             : static_cast<wide>(b) - static_cast<wide>(a);
    return static_cast<double>(static_cast<wide>(apart));
  } else {
    const double x = value_of(a);
    const double y = value_of(b);
    if (std::isnan(x) && std::isnan(y)) {
      return nans == nan_rule::agree || REPRISE_MUTANT(parity_lets_nan_pass) ? 0 : infinite;
    }
    if (x == y) return 0;  // infinities too
    const double apart = std::abs(x - y);
    return std::isnan(apart) ? infinite : apart;
  }
}

template <class T>
parity_gap compare_elements(const tensor_ref& reference, const tensor_ref& got,
                            const parity_bound& bound, nan_rule nans) {
  parity_gap seen;
  double largest = 0;
  std::optional<std::size_t> other_bits;  // the first element that is equal in other bits
  for (std::size_t i = 0; i < reference.shape.count(); ++i) {
    const T wanted = element_at<T>(reference, i);
    const double magnitude = std::abs(value_of(wanted));
    if (std::isfinite(magnitude)) largest = std::max(largest, magnitude);
    const double apart = distance(wanted, element_at<T>(got, i), nans);
    if (apart > seen.absolute) {
      seen.absolute = apart;
      seen.worst = i;
    }
    if (apart == 0 && !other_bits && value_of(wanted) == value_of(element_at<T>(got, i)) &&
        std::memcmp(reference.data + i * sizeof(T), got.data + i * sizeof(T), sizeof(T)) != 0) {
      other_bits = i;
    }
  }
  if (seen.absolute != 0) seen.relative = largest == 0 ? infinite : seen.absolute / largest;
  if (seen.absolute == infinite) {
    seen.why = fmt::format("element {} is {} and not {}", seen.worst,
                           value_of(element_at<T>(got, seen.worst)),
                           value_of(element_at<T>(reference, seen.worst)));
  }
  if (bound == parity_bound{} && seen.absolute == 0 && other_bits) {
    seen.worst = *other_bits;
    seen.why = fmt::format("element {} is {} and not {}, the same value in other bits", seen.worst,
                           value_of(element_at<T>(got, seen.worst)),
                           value_of(element_at<T>(reference, seen.worst)));
    return seen;
  }
  seen.within =
      seen.absolute != infinite && seen.absolute <= bound.absolute + bound.relative * largest;
  return seen;
}

parity_gap incomparable(std::string why) {
  return {0, infinite, infinite, false, std::move(why)};
}

}  // namespace

std::string text_of(const parity_bound& bound) {
  if (bound == parity_bound{}) return "exact";
  std::string text;
  if (bound.absolute != 0) text = fmt::format("{:.3g} absolute", bound.absolute);
  if (bound.relative != 0) {
    text += fmt::format("{}{:.3g} relative", text.empty() ? "" : " and ", bound.relative);
  }
  return text;
}

parity_gap compare(const tensor_ref& reference, const tensor_ref& got, const parity_bound& bound,
                   nan_rule nans) {
  if (reference.type != got.type) {
    return incomparable(
        fmt::format("it holds {} and not {}", name_of(got.type), name_of(reference.type)));
  }
  if (reference.shape != got.shape) {
    return incomparable(fmt::format("its shape is {} and not {}", to_string(got.shape),
                                    to_string(reference.shape)));
  }
  if (reference.shape.count() == 0 && !REPRISE_MUTANT(two_empties_are_parity)) {
    return incomparable("both are empty, which says nothing");
  }
  switch (reference.type) {
    case dtype::f32: return compare_elements<float>(reference, got, bound, nans);
    case dtype::f16: return compare_elements<half>(reference, got, bound, nans);
    case dtype::bf16: return compare_elements<bf16>(reference, got, bound, nans);
    case dtype::f64: return compare_elements<double>(reference, got, bound, nans);
    case dtype::i32: return compare_elements<std::int32_t>(reference, got, bound, nans);
    case dtype::i64: return compare_elements<std::int64_t>(reference, got, bound, nans);
    case dtype::u64: return compare_elements<std::uint64_t>(reference, got, bound, nans);
    case dtype::u8: return compare_elements<std::uint8_t>(reference, got, bound, nans);
  }
  return incomparable("its elements are of no known type");
}

}  // namespace reprise
