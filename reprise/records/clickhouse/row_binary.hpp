// Records as the rows of a table, in ClickHouse's RowBinary. For this room's .cpp files.
//
// A row is its columns one after the other: numbers little endian, texts and arrays behind their
// length in groups of seven bits (docs of ClickHouse, "RowBinary"). Stateless, safe from any
// thread.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reprise/records/tap_record.hpp"

namespace reprise::records {

// Columns that the table has beside those of schema.hpp, in front of them: who sent a row, and in
// which block, so that what arrived can be counted.
struct table_column {
  std::string_view name;
  std::string_view type;
};
inline constexpr table_column block_columns[] = {
    {"run_name", "String"}, {"batch", "String"}, {"in_batch", "UInt64"}};

std::string rows_of(std::span<const tap_record> records, std::string_view run_name,
                    std::string_view batch);

}  // namespace reprise::records
