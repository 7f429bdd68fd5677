// Records as Arrow record batches, and back. For this room's .cpp files: the only header with Arrow
// types.
//
// The columns are those of schema.hpp; the version stands in the metadata of the Arrow schema under
// "reprise_records". Stateless, safe from any thread.
#pragma once

#include <arrow/api.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/records/tap_record.hpp"

namespace reprise::records {

std::shared_ptr<arrow::Schema> arrow_schema(std::string_view run);

// What is wrong with the schema of a file, for a refusal; empty where it is ours.
std::string schema_fault(const arrow::Schema& schema);

// One row for each record. Throws reprise::error where Arrow cannot allocate.
std::shared_ptr<arrow::RecordBatch> batch_of(std::span<const tap_record> records,
                                             const std::shared_ptr<arrow::Schema>& schema);

// Views into `batch`, which has to be of arrow_schema(). Throws usage_error, naming `file`, where a
// row is no record.
std::vector<tap_record> records_in(const arrow::RecordBatch& batch, std::string_view file);

// Throws reprise::error with the one line of what Arrow said.
void require(const arrow::Status& status, std::string_view what);

template <class Value>
Value required(arrow::Result<Value> result, std::string_view what) {
  require(result.status(), what);
  return std::move(result).ValueUnsafe();
}

}  // namespace reprise::records
