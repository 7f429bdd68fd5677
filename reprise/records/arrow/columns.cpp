#include "reprise/records/arrow/columns.hpp"

#include <arrow/util/key_value_metadata.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "reprise/base/error.hpp"
#include "reprise/formats/refusal.hpp"
#include "reprise/records/schema.hpp"

namespace reprise::records {

namespace {

constexpr std::string_view version_key = "reprise_records";
constexpr std::array every_dtype{dtype::f32, dtype::f16, dtype::bf16, dtype::f64,
                                 dtype::i32, dtype::i64, dtype::u64,  dtype::u8};

// Where each column of schema.hpp stands in a batch.
namespace at {
enum : int {
  run,
  step,
  replay,
  kind,
  layer,
  shard,
  shards,
  shard_axis,
  content,
  request,
  first_row,
  rows,
  place,
  type,
  shape,
  bytes,
  end
};
static_assert(end == static_cast<int>(record_columns.size()));
}  // namespace at

std::shared_ptr<arrow::DataType> arrow_type(std::string_view name) {
  if (name == "uint64") return arrow::uint64();
  if (name == "int64") return arrow::int64();
  if (name == "int32") return arrow::int32();
  if (name == "string") return arrow::utf8();
  if (name == "large_binary") return arrow::large_binary();
  return arrow::list(arrow::int64());
}

std::optional<dtype> dtype_named(std::string_view name) {
  for (const dtype type : every_dtype) {
    if (name_of(type) == name) return type;
  }
  return std::nullopt;
}

// Builds a column; `put` appends the value of one record.
template <class Builder, class Put>
std::shared_ptr<arrow::Array> column(std::span<const tap_record> records, Put&& put) {
  Builder builder;
  require(builder.Reserve(static_cast<std::int64_t>(records.size())), "an Arrow column");
  for (const tap_record& record : records) require(put(builder, record), "an Arrow column");
  return required(builder.Finish(), "an Arrow column");
}

std::shared_ptr<arrow::Array> unsigned_column(std::span<const tap_record> records, auto&& value) {
  return column<arrow::UInt64Builder>(
      records, [&](auto& to, const tap_record& r) { return to.Append(value(r)); });
}

std::shared_ptr<arrow::Array> signed_column(std::span<const tap_record> records, auto&& value) {
  return column<arrow::Int64Builder>(
      records, [&](auto& to, const tap_record& r) { return to.Append(value(r)); });
}

std::shared_ptr<arrow::Array> small_column(std::span<const tap_record> records, auto&& value) {
  return column<arrow::Int32Builder>(
      records, [&](auto& to, const tap_record& r) { return to.Append(value(r)); });
}

std::shared_ptr<arrow::Array> text_column(std::span<const tap_record> records, auto&& value) {
  return column<arrow::StringBuilder>(
      records, [&](auto& to, const tap_record& r) { return to.Append(value(r)); });
}

std::shared_ptr<arrow::Array> shape_column(std::span<const tap_record> records) {
  const auto sizes = std::make_shared<arrow::Int64Builder>();
  arrow::ListBuilder builder{arrow::default_memory_pool(), sizes};
  for (const tap_record& record : records) {
    require(builder.Append(), "an Arrow column");
    require(
        sizes->AppendValues(record.shape.data(), static_cast<std::int64_t>(record.shape.size())),
        "an Arrow column");
  }
  return required(builder.Finish(), "an Arrow column");
}

// A column of a batch that is known to have this type.
template <class Array>
const Array& as(const arrow::RecordBatch& batch, int at) {
  return static_cast<const Array&>(*batch.column(at));
}

}  // namespace

void require(const arrow::Status& status, std::string_view what) {
  if (status.ok()) return;
  std::string said = status.ToString();
  said.resize(std::min(said.size(), said.find('\n')));
  throw error{fmt::format("{}: {}", what, said)};
}

std::shared_ptr<arrow::Schema> arrow_schema(std::string_view run) {
  arrow::FieldVector fields;
  for (const record_column& one : record_columns) {
    fields.push_back(arrow::field(std::string{one.name}, arrow_type(one.arrow), false));
  }
  return arrow::schema(
      fields, arrow::key_value_metadata({std::string{version_key}, "run"},
                                        {std::to_string(record_schema_version), std::string{run}}));
}

std::string schema_fault(const arrow::Schema& schema) {
  const auto& metadata = schema.metadata();
  const int at = metadata == nullptr ? -1 : metadata->FindKey(std::string{version_key});
  if (at < 0) return "it has no records of reprise";
  const std::string& version = metadata->value(at);
  if (version != std::to_string(record_schema_version)) {
    return fmt::format("its records are of schema {} and this reads schema {}", version,
                       record_schema_version);
  }
  if (!schema.Equals(*arrow_schema(""), false)) return "its columns are not those of its schema";
  return {};
}

std::shared_ptr<arrow::RecordBatch> batch_of(std::span<const tap_record> records,
                                             const std::shared_ptr<arrow::Schema>& schema) {
  arrow::ArrayVector columns{
      unsigned_column(records, [](const tap_record& r) { return r.run; }),
      unsigned_column(records, [](const tap_record& r) { return r.step; }),
      unsigned_column(records,
                      [](const tap_record& r) { return static_cast<std::uint64_t>(r.replay); }),
      text_column(records, [](const tap_record& r) { return r.kind; }),
      small_column(records, [](const tap_record& r) { return r.layer; }),
      small_column(records, [](const tap_record& r) { return r.shard; }),
      small_column(records, [](const tap_record& r) { return r.shards; }),
      small_column(records, [](const tap_record& r) { return r.shard_axis; }),
      text_column(records, [](const tap_record& r) { return name_of(r.content); }),
      unsigned_column(records, [](const tap_record& r) { return r.request; }),
      signed_column(records, [](const tap_record& r) { return r.first_row; }),
      signed_column(records, [](const tap_record& r) { return r.rows; }),
      signed_column(records, [](const tap_record& r) { return r.place; }),
      text_column(records, [](const tap_record& r) { return name_of(r.type); }),
      shape_column(records),
      column<arrow::LargeBinaryBuilder>(records, [](auto& to, const tap_record& r) {
        return to.Append(reinterpret_cast<const std::uint8_t*>(r.bytes.data()),
                         static_cast<std::int64_t>(r.bytes.size()));
      })};
  return arrow::RecordBatch::Make(schema, static_cast<std::int64_t>(records.size()),
                                  std::move(columns));
}

std::vector<tap_record> records_in(const arrow::RecordBatch& batch, std::string_view file) {
  if (!batch.ValidateFull().ok()) {
    formats::refuse(file, "a batch of it is damaged", formats::copy_again);
  }
  std::vector<tap_record> records(static_cast<std::size_t>(batch.num_rows()));
  const auto& shapes = as<arrow::ListArray>(batch, at::shape);
  const auto& sizes = static_cast<const arrow::Int64Array&>(*shapes.values());
  for (std::int64_t i = 0; i < batch.num_rows(); ++i) {
    const std::string_view content = as<arrow::StringArray>(batch, at::content).GetView(i);
    const std::optional<dtype> type =
        dtype_named(as<arrow::StringArray>(batch, at::type).GetView(i));
    const std::string_view bytes = as<arrow::LargeBinaryArray>(batch, at::bytes).GetView(i);
    if (!type || (content != "rows" && content != "scores")) {
      formats::refuse(file, "a record of it has an element type or a content that is unknown",
                      formats::write_again);
    }
    records[static_cast<std::size_t>(i)] = {
        .run = as<arrow::UInt64Array>(batch, at::run).Value(i),
        .step = as<arrow::UInt64Array>(batch, at::step).Value(i),
        .replay = replay_id{as<arrow::UInt64Array>(batch, at::replay).Value(i)},
        .kind = as<arrow::StringArray>(batch, at::kind).GetView(i),
        .layer = as<arrow::Int32Array>(batch, at::layer).Value(i),
        .shard = as<arrow::Int32Array>(batch, at::shard).Value(i),
        .shards = as<arrow::Int32Array>(batch, at::shards).Value(i),
        .shard_axis = as<arrow::Int32Array>(batch, at::shard_axis).Value(i),
        .content = content == "rows" ? record_content::rows : record_content::scores,
        .request = as<arrow::UInt64Array>(batch, at::request).Value(i),
        .first_row = as<arrow::Int64Array>(batch, at::first_row).Value(i),
        .rows = as<arrow::Int64Array>(batch, at::rows).Value(i),
        .place = as<arrow::Int64Array>(batch, at::place).Value(i),
        .type = *type,
        .shape = {sizes.raw_values() + shapes.value_offset(i),
                  static_cast<std::size_t>(shapes.value_length(i))},
        .bytes = std::as_bytes(std::span{bytes})};
    try {
      check(records[static_cast<std::size_t>(i)]);
    } catch (const usage_error& wrong) {
      formats::refuse(file, wrong.what(), formats::write_again);
    }
  }
  return records;
}

}  // namespace reprise::records
