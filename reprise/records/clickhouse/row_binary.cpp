#include "reprise/records/clickhouse/row_binary.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace reprise::records {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

namespace {

template <class Number>
void put_number(std::string& to, Number value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}

void put_length(std::string& to, std::uint64_t length) {
  for (; length >= 0x80; length >>= 7) to += static_cast<char>((length & 0x7fU) | 0x80U);
  to += static_cast<char>(length);
}

void put_text(std::string& to, std::string_view text) {
  put_length(to, text.size());
  to += text;
}

}  // namespace

std::string rows_of(std::span<const tap_record> records, std::string_view run_name,
                    std::string_view batch) {
  std::string rows;
  for (std::uint64_t i = 0; i < records.size(); ++i) {
    const tap_record& record = records[i];
    put_text(rows, run_name);
    put_text(rows, batch);
    put_number(rows, i);
    put_number(rows, record.run);
    put_number(rows, record.step);
    put_number(rows, static_cast<std::uint64_t>(record.replay));
    put_text(rows, record.kind);
    put_number(rows, static_cast<std::int32_t>(record.layer));
    put_number(rows, static_cast<std::int32_t>(record.shard));
    put_number(rows, static_cast<std::int32_t>(record.shards));
    put_number(rows, static_cast<std::int32_t>(record.shard_axis));
    put_text(rows, name_of(record.content));
    put_number(rows, record.request);
    put_number(rows, record.first_row);
    put_number(rows, record.rows);
    put_number(rows, record.place);
    put_text(rows, name_of(record.type));
    put_length(rows, record.shape.size());
    for (const std::int64_t size : record.shape) put_number(rows, size);
    put_text(rows, {reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size()});
  }
  return rows;
}

}  // namespace reprise::records
