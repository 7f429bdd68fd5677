#include "reprise/records/record_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>

#include "reprise/base/error.hpp"
#include "reprise/formats/npy.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/safetensors_writer.hpp"

namespace reprise {

namespace {

template <class Value>
std::vector<std::byte> as_array(const std::vector<Value>& values) {
  const auto bytes = std::as_bytes(std::span{values});
  return {bytes.begin(), bytes.end()};
}

// Whether the record has rows as the point has.
bool fits(const auto& point, const tap_record& record) {
  return point.type == record.type && point.shard_axis == record.shard_axis &&
         std::ranges::equal(point.row_shape, record.shape.subspan(1));
}

std::vector<std::byte> widened(std::span<const std::byte> narrow) {
  std::vector<float> wide(narrow.size() / sizeof(bf16));
  for (std::size_t i = 0; i < wide.size(); ++i) {
    bf16 value;
    std::memcpy(&value, narrow.data() + i * sizeof value, sizeof value);
    wide[i] = widen(value);
  }
  return as_array(wide);
}

[[noreturn]] void refuse_empty() {
  throw usage_error{"an export of records: there are none to write; give a wider --where"};
}

}  // namespace

void record_export::add(const tap_record& record) {
  const auto [at, fresh] = points_.try_emplace(recorded_point{record});
  point& into = at->second;
  if (fresh) {
    into.type = record.type;
    into.shard_axis = record.shard_axis;
    into.row_shape.assign(record.shape.begin() + 1, record.shape.end());
    into.row_bytes = size_of(record.type);
    for (const std::int64_t size : into.row_shape) {
      into.row_bytes *= static_cast<std::size_t>(size);
    }
  } else if (!fits(into, record)) {
    throw usage_error{
        fmt::format("an export of records: point {} has rows of several types, "
                    "shapes or shard axes; choose one run or step range with --where",
                    formats::quoted_name(point_name(record)))};
  }
  for (std::int64_t row = 0; row < record.rows; ++row) {
    into.rows.push_back({record.request, record.first_row + row, record.step,
                         into.bytes.size() + static_cast<std::size_t>(row) * into.row_bytes});
  }
  into.bytes.insert(into.bytes.end(), record.bytes.begin(), record.bytes.end());
}

std::uint64_t record_export::rows() const noexcept {
  std::uint64_t sum = 0;
  for (const auto& [name, one] : points_) sum += one.rows.size();
  return sum;
}

std::vector<record_export::placed_row> record_export::point::in_order() const {
  std::vector<placed_row> order = rows;
  std::ranges::stable_sort(order, {}, [](const placed_row& r) {
    return std::tuple{r.request, r.token, r.step};
  });
  return order;
}

std::vector<std::byte> record_export::point::bytes_of(const std::vector<placed_row>& order) const {
  std::vector<std::byte> sorted;
  sorted.reserve(bytes.size());
  for (const placed_row& one : order) {
    const auto row_of = std::span{bytes}.subspan(one.at, row_bytes);
    sorted.insert(sorted.end(), row_of.begin(), row_of.end());
  }
  return sorted;
}

std::vector<std::int64_t> record_export::point::shape() const {
  std::vector<std::int64_t> all{static_cast<std::int64_t>(rows.size())};
  all.insert(all.end(), row_shape.begin(), row_shape.end());
  return all;
}

void record_export::write_npy(const std::filesystem::path& file) const {
  if (points_.empty()) refuse_empty();
  if (points_.size() != 1) {
    throw usage_error{
        fmt::format("an export to npy is one array and these are {} points; choose "
                    "one with --where point=KIND,layer=N,shard=I, or export safetensors",
                    points_.size())};
  }
  const point& one = points_.begin()->second;
  const std::vector<std::byte> bytes = one.bytes_of(one.in_order());
  if (one.type == dtype::bf16) {
    formats::write_npy(file, dtype::f32, one.shape(), widened(bytes));
  } else {
    formats::write_npy(file, one.type, one.shape(), bytes);
  }
}

void record_export::write_safetensors(const std::filesystem::path& file) const {
  if (points_.empty()) refuse_empty();
  std::vector<formats::tensor_to_write> tensors;
  for (const auto& [name, one] : points_) {
    const std::string text = name.name();
    const std::vector<placed_row> order = one.in_order();
    const auto of_rows = [&](std::string_view what, dtype type, std::vector<std::byte> bytes) {
      tensors.push_back(
          {fmt::format("{}.{}", text, what), type, {one.shape()[0]}, std::move(bytes)});
    };
    std::vector<std::uint64_t> requests;
    std::vector<std::int64_t> tokens;
    std::vector<std::uint64_t> steps;
    for (const placed_row& r : order) {
      requests.push_back(r.request);
      tokens.push_back(r.token);
      steps.push_back(r.step);
    }
    tensors.push_back({text, one.type, one.shape(), one.bytes_of(order)});
    of_rows("request", dtype::u64, as_array(requests));
    of_rows("token", dtype::i64, as_array(tokens));
    of_rows("step", dtype::u64, as_array(steps));
    if (name.shards != 1) {
      tensors.push_back({text + ".shard_axis",
                         dtype::i32,
                         {1},
                         as_array(std::vector{static_cast<std::int32_t>(one.shard_axis)})});
    }
  }
  formats::write_safetensors(file, tensors);
}

}  // namespace reprise
