#include "reprise/records/tap_record.hpp"

#include <fmt/format.h>

#include <optional>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/records/schema.hpp"

namespace reprise {

namespace {

// None where a size is negative, or the product passes what a record may have.
std::optional<std::uint64_t> bytes_of_shape(std::span<const std::int64_t> shape, dtype type) {
  std::uint64_t bytes = size_of(type);
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    if (size != 0 && bytes > most_record_bytes / static_cast<std::uint64_t>(size)) {
      return std::nullopt;
    }
    bytes *= static_cast<std::uint64_t>(size);
  }
  return bytes;
}

}  // namespace

std::string point_name(std::string_view kind, int layer, int shard, int shards) {
  std::string name = layer < 0 ? std::string{kind} : fmt::format("{}:{}", kind, layer);
  if (shards != 1) name += fmt::format("@{}of{}", shard, shards);
  return name;
}

void check(const tap_record& record) {
  const auto refuse = [&](std::string_view what) {
    throw usage_error{fmt::format("a record of point {}: {}; make records with the sizes they have",
                                  formats::quoted_name(point_name(record)), what)};
  };
  if (record.kind.empty()) refuse("its kind is empty");
  if (formats::well_formed_bytes(record.kind) != record.kind.size()) refuse("its kind is no UTF-8");
  if (record.shard < 0 || record.shard >= record.shards) {
    refuse(fmt::format("it is shard {} of {}, and they count from 0", record.shard, record.shards));
  }
  if (record.shard_axis < -1) refuse(fmt::format("its shard axis is {}", record.shard_axis));
  if (record.shape.empty()) refuse("it has no shape");
  if (record.shape[0] != record.rows) {
    refuse(
        fmt::format("it has {} rows and its shape begins with {}", record.rows, record.shape[0]));
  }
  const auto bytes = bytes_of_shape(record.shape, record.type);
  if (!bytes) refuse(fmt::format("its shape is beyond {} bytes, or negative", most_record_bytes));
  if (*bytes != record.bytes.size()) {
    refuse(fmt::format("its shape takes {} bytes and it has {}", *bytes, record.bytes.size()));
  }
}

}  // namespace reprise
