// Rows of the table back from RowBinary, as the tests of ClickHouse compare them.
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/records/support.hpp"

namespace reprise::test {

struct table_row {
  std::string run_name;
  std::string batch;
  std::uint64_t in_batch = 0;
  owned_record record;

  bool operator==(const table_row&) const = default;
};

class row_decoder {
 public:
  explicit row_decoder(std::string_view rows) : rest_{rows} {}

  // All rows; throws where they end in the middle of one.
  std::vector<table_row> all() {
    std::vector<table_row> rows;
    while (!rest_.empty()) rows.push_back(row());
    return rows;
  }

 private:
  std::string_view bytes(std::size_t count) {
    if (count > rest_.size()) throw std::runtime_error{"a row is cut short"};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  template <class Number>
  Number number() {
    Number value;
    std::memcpy(&value, bytes(sizeof value).data(), sizeof value);
    return value;
  }
  std::size_t length() {
    std::size_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= std::size_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
  }
  std::string text() { return std::string{bytes(length())}; }

  table_row row() {
    table_row row;
    row.run_name = text();
    row.batch = text();
    row.in_batch = number<std::uint64_t>();
    owned_record& r = row.record;
    r.run = number<std::uint64_t>();
    r.step = number<std::uint64_t>();
    r.replay = number<std::uint64_t>();
    r.kind = text();
    r.layer = number<std::int32_t>();
    r.shard = number<std::int32_t>();
    r.shards = number<std::int32_t>();
    r.shard_axis = number<std::int32_t>();
    r.content = text() == "rows" ? record_content::rows : record_content::scores;
    r.request = number<std::uint64_t>();
    r.first_row = number<std::int64_t>();
    r.rows = number<std::int64_t>();
    r.place = number<std::int64_t>();
    const std::string type = text();
    for (const dtype one : {dtype::f32, dtype::f16, dtype::bf16, dtype::f64, dtype::i32, dtype::i64,
                            dtype::u64, dtype::u8}) {
      if (name_of(one) == type) r.type = one;
    }
    for (std::size_t left = length(); left != 0; --left) r.shape.push_back(number<std::int64_t>());
    const std::string data = text();
    const auto all = std::as_bytes(std::span{data});
    r.bytes.assign(all.begin(), all.end());
    return row;
  }

  std::string_view rest_;
};

}  // namespace reprise::test
