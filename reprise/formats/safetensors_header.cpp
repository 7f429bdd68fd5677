#include "reprise/formats/safetensors_header.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <ranges>
#include <tuple>
#include <utility>

#include "reprise/formats/json_events.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise {

namespace {

using formats::copy_again;
using formats::json_event;
using formats::json_kind;
using formats::quoted_name;
using formats::refuse;
using formats::refuse_tensor;
using formats::write_again;

constexpr std::uint64_t length_bytes = 8;
constexpr std::string_view metadata_key = "__metadata__";

using stored_type = std::pair<std::string_view, dtype>;
constexpr std::array stored_types{
    stored_type{"F32", dtype::f32},   stored_type{"F16", dtype::f16},
    stored_type{"BF16", dtype::bf16}, stored_type{"F64", dtype::f64},
    stored_type{"I32", dtype::i32},   stored_type{"I64", dtype::i64},
    stored_type{"U64", dtype::u64},   stored_type{"U8", dtype::u8},
};

// Where the data lies in the file.
struct data_range {
  std::uint64_t begin;  // bytes from the start of the file
  std::uint64_t bytes;
};

// Bytes of a tensor; none when they, or the product of its non-zero sizes (and so a stride that
// somebody computes from it), do not fit an int64.
std::optional<std::uint64_t> tensor_bytes(const std::vector<std::int64_t>& shape, dtype type) {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t product = size_of(type);
  bool no_elements = false;
  for (const std::int64_t size : shape) {
    if (size == 0) {
      no_elements = true;
      continue;
    }
    if (product > limit / static_cast<std::uint64_t>(size)) return std::nullopt;
    product *= static_cast<std::uint64_t>(size);
  }
  return no_elements ? 0 : product;
}

// Takes the events of the header's JSON and makes entries of them. Depth says what a path means:
// 0 the header, 1 a tensor or __metadata__, 2 a field, 3 a number of shape or data_offsets.
class entry_reader {
 public:
  entry_reader(std::string_view file, data_range data) : file_{file}, data_{data} {}

  void take(const json_event& event) {
    switch (event.path.size()) {
      case 0: return;  // its first byte has said that it is an object
      case 1: return event.path[0] == metadata_key ? take_metadata(event) : take_tensor(event);
      case 2: return event.path[0] == metadata_key ? take_text(event) : take_field(event);
      default: return take_number(event);
    }
  }

  safetensors_header finish() && { return std::move(header_); }

 private:
  // A tensor while its fields come in, in any order.
  struct unfinished {
    std::string name;
    std::optional<dtype> type{};
    std::optional<std::vector<std::int64_t>> shape{};
    std::optional<std::vector<std::uint64_t>> offsets{};
  };

  [[noreturn]] void refuse_current(std::string_view what,
                                   std::string_view remedy = write_again) const {
    refuse_tensor(file_, what, current_.name, remedy);
  }

  void take_metadata(const json_event& event) const {
    if (event.kind == json_kind::object || event.kind == json_kind::end) return;
    refuse(file_, "__metadata__ is not a JSON object of strings", write_again);
  }

  void take_text(const json_event& event) {
    const std::string& key = event.path[1];
    if (event.kind != json_kind::text) {
      refuse(file_,
             fmt::format("__metadata__ has a value that is not a string at {}", quoted_name(key)),
             write_again);
    }
    header_.metadata.emplace(key, event.text);
  }

  void take_tensor(const json_event& event) {
    if (event.kind == json_kind::end) return finish_tensor();
    current_ = {.name = event.path[0]};
    if (event.kind != json_kind::object) refuse_current("the header entry is not a JSON object");
  }

  void take_field(const json_event& event) {
    if (event.kind == json_kind::end) return;  // of shape or data_offsets
    const std::string& field = event.path[1];
    if (field == "dtype") {
      if (event.kind != json_kind::text) refuse_current("dtype is not a string");
      current_.type = stored_type(event.text);
    } else if (field == "shape") {
      if (event.kind != json_kind::array) refuse_current("shape is not a list of sizes");
      current_.shape.emplace();
    } else if (field == "data_offsets") {
      if (event.kind != json_kind::array) refuse_current("data_offsets is not a list of two");
      current_.offsets.emplace();
    } else {
      refuse_current(fmt::format("the header entry has an unknown field {}", quoted_name(field)));
    }
  }

  void take_number(const json_event& event) {
    if (event.path[1] == "shape") {
      constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
      if (event.kind != json_kind::natural || event.natural > limit) {
        refuse_current("shape has a size that is not a whole number from 0 to 2^63-1");
      }
      if (current_.shape->size() == max_safetensors_rank) {
        refuse_current(fmt::format("shape has more than {} sizes", max_safetensors_rank));
      }
      current_.shape->push_back(static_cast<std::int64_t>(event.natural));
      return;
    }
    if (event.kind != json_kind::natural) {
      refuse_current("data_offsets has an offset that is not a whole number from 0 to 2^64-1");
    }
    if (current_.offsets->size() == 2) refuse_current("data_offsets has more than two offsets");
    current_.offsets->push_back(event.natural);
  }

  dtype stored_type(std::string_view written) const {
    for (const auto& [name, type] : stored_types) {
      if (name == written) return type;
    }
    refuse_current(
        fmt::format("the dtype {} cannot be read", quoted_name(written)),
        fmt::format("convert it to one of {}", fmt::join(stored_types | std::views::keys, ", ")));
  }

  void finish_tensor() {
    if (!current_.type) refuse_current("the header entry has no dtype");
    if (!current_.shape) refuse_current("the header entry has no shape");
    if (!current_.offsets) refuse_current("the header entry has no data_offsets");
    if (current_.offsets->size() != 2) refuse_current("data_offsets is not a list of two");

    const std::uint64_t begin = current_.offsets->front();
    const std::uint64_t end = current_.offsets->back();
    if (begin > end) {
      refuse_current(fmt::format("data_offsets run backwards ({} to {})", begin, end));
    }
    if (end > data_.bytes) {
      refuse_current(fmt::format("the data ends outside the file (at byte {} of {} data bytes)",
                                 end, data_.bytes),
                     copy_again);
    }
    const std::optional<std::uint64_t> size = tensor_bytes(*current_.shape, *current_.type);
    if (!size) refuse_current("shape has more elements than can be counted");
    if (*size != end - begin) {
      refuse_current(fmt::format("data_offsets hold {} bytes where dtype and shape need {}",
                                 end - begin, *size));
    }
    header_.tensors.push_back({.name = std::move(current_.name),
                               .type = *current_.type,
                               .shape = *std::move(current_.shape),
                               .begin = data_.begin + begin,
                               .end = data_.begin + end});
  }

  std::string_view file_;
  data_range data_;
  unfinished current_;
  safetensors_header header_;
};

// The header's text, once its length is known to be true.
std::string_view header_text(std::span<const std::byte> file_start, std::uint64_t file_bytes,
                             std::string_view file) {
  if (file_bytes == 0) refuse(file, "the file is empty", copy_again);
  const std::string_view text{reinterpret_cast<const char*>(file_start.data()), file_start.size()};
  if (text.starts_with("version https://git-lfs")) {
    refuse(file, "this is a Git LFS pointer and not the file itself", "fetch it with git lfs pull");
  }
  if (file_bytes < length_bytes || text.size() < length_bytes) {
    refuse(file, fmt::format("the file ends inside its first {} bytes", length_bytes), copy_again);
  }
  std::uint64_t length = 0;
  for (std::uint64_t at = 0; at < length_bytes; ++at) {
    length |= static_cast<std::uint64_t>(file_start[at]) << (8 * at);
  }
  if (length > max_safetensors_header_bytes) {
    refuse(file,
           fmt::format("the header would be {} bytes long, the limit is {}", length,
                       max_safetensors_header_bytes),
           "check that this is a safetensors file");
  }
  if (length > file_bytes - length_bytes) {
    refuse(file,
           fmt::format("the header is longer than the file (it would end at byte {} of {})",
                       length_bytes + length, file_bytes),
           copy_again);
  }
  if (length > text.size() - length_bytes) {
    refuse(file, "only a part of the header was read", "read all of it before parsing");
  }
  return text.substr(length_bytes, length);
}

// Every byte of the data belongs to one tensor: no overlap, no hole, nothing left over.
void check_cover(std::vector<safetensors_entry>& tensors, data_range data, std::string_view file) {
  // Tensors without elements share their begin with a neighbour; the name makes the order one.
  std::ranges::sort(tensors, {}, [](const safetensors_entry& tensor) {
    return std::tie(tensor.begin, tensor.end, tensor.name);
  });
  std::uint64_t covered = data.begin;
  const safetensors_entry* before = nullptr;
  for (const safetensors_entry& tensor : tensors) {
    if (tensor.begin < covered) {
      refuse_tensor(file, fmt::format("the data overlaps that of {}", quoted_name(before->name)),
                    tensor.name, write_again);
    }
    if (tensor.begin > covered) {
      refuse_tensor(file,
                    fmt::format("a hole of {} bytes lies before the data", tensor.begin - covered),
                    tensor.name, write_again);
    }
    covered = tensor.end;
    before = &tensor;
  }
  if (const std::uint64_t left = data.begin + data.bytes - covered; left != 0) {
    refuse(file, fmt::format("{} bytes after the last tensor belong to none", left), write_again);
  }
}

}  // namespace

safetensors_header parse_safetensors_header(std::span<const std::byte> file_start,
                                            std::uint64_t file_bytes, std::string_view file_name) {
  const std::string_view text = header_text(file_start, file_bytes, file_name);
  const std::uint64_t data_begin = length_bytes + text.size();
  const data_range data{.begin = data_begin, .bytes = file_bytes - data_begin};

  if (!text.starts_with('{')) {
    refuse(file_name, "the header is not a JSON object (it does not begin with '{')", write_again);
  }
  entry_reader reader{file_name, data};
  const auto fault = formats::read_json(text, [&](const json_event& event) { reader.take(event); });
  if (fault) {
    if (fault->why == formats::json_fault::reason::key_twice && fault->path.size() == 1) {
      refuse_tensor(file_name, "the header has the name twice", fault->path.front(), write_again);
    }
    refuse(file_name, "the header " + describe(*fault), write_again);
  }
  safetensors_header header = std::move(reader).finish();
  check_cover(header.tensors, data, file_name);
  return header;
}

}  // namespace reprise
