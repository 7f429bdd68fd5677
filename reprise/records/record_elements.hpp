// The numbers in a record, whatever they are stored as: what summaries, exports and pictures read.
//
// Stateless, safe from any thread. A record's bytes may begin at any address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/records/tap_record.hpp"

namespace reprise {

// Elements in a row: the product of the shape without its first size.
std::int64_t row_elements(const tap_record& record);

// Element i of the record, widened; i64 and u64 beyond 2^53 are rounded.
double element_at(const tap_record& record, std::size_t i);

// The Euclidean norm of a row, from 0; summed in f64, in the order of the elements.
double row_norm(const tap_record& record, std::int64_t row);

}  // namespace reprise
