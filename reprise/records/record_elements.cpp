#include "reprise/records/record_elements.hpp"

#include <cmath>
#include <cstring>

namespace reprise {

namespace {

template <class Stored>
Stored stored_at(const tap_record& record, std::size_t i) {
  Stored value;
  std::memcpy(&value, record.bytes.data() + i * sizeof value, sizeof value);
  return value;
}

}  // namespace

std::int64_t row_elements(const tap_record& record) {
  std::int64_t elements = 1;
  for (const std::int64_t size : record.shape.subspan(1)) elements *= size;
  return elements;
}

double element_at(const tap_record& record, std::size_t i) {
  switch (record.type) {
    case dtype::f32: return stored_at<float>(record, i);
    case dtype::f16: return half_to_float(stored_at<std::uint16_t>(record, i));
    case dtype::bf16: return widen(stored_at<bf16>(record, i));
    case dtype::f64: return stored_at<double>(record, i);
    case dtype::i32: return stored_at<std::int32_t>(record, i);
    case dtype::i64: return static_cast<double>(stored_at<std::int64_t>(record, i));
    case dtype::u64: return static_cast<double>(stored_at<std::uint64_t>(record, i));
    case dtype::u8: return stored_at<std::uint8_t>(record, i);
  }
  return 0;
}

double row_norm(const tap_record& record, std::int64_t row) {
  const auto elements = static_cast<std::size_t>(row_elements(record));
  const std::size_t first = static_cast<std::size_t>(row) * elements;
  double squares = 0;
  for (std::size_t i = first; i < first + elements; ++i) {
    const double value = element_at(record, i);
    squares += value * value;
  }
  return std::sqrt(squares);
}

}  // namespace reprise
