#include "reprise/formats/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/formats/json_events.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise {

namespace {

using formats::json_event;
using formats::json_kind;
using formats::quoted_name;
using formats::refuse;
using formats::refuse_tensor;
using formats::write_again;

constexpr std::string_view map_key = "weight_map";

// A downloaded index must not make us open files elsewhere. Backslashes are refused too: they part
// folders on other systems, and no honest shard has one.
bool is_plain_file_name(std::string_view name) {
  if (name.empty() || name == "." || name == "..") return false;
  return std::ranges::none_of(name, [](char c) {
    return c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
}

class map_reader {
 public:
  explicit map_reader(std::string_view file) : file_{file} {}

  void take(const json_event& event) {
    if (event.path.empty()) return take_root(event);
    if (event.path.front() != map_key || event.kind == json_kind::end) return;
    if (event.path.size() == 1) return take_map(event);
    take_shard(event.path[1], event);
  }

  std::map<std::string, std::string> finish() && {
    if (shards_.empty()) refuse(file_, "weight_map is missing or names no tensor", write_again);
    return std::move(shards_);
  }

 private:
  void take_root(const json_event& event) const {
    if (event.kind == json_kind::object || event.kind == json_kind::end) return;
    refuse(file_, "the index is not a JSON object", write_again);
  }

  void take_map(const json_event& event) const {
    if (event.kind == json_kind::object) return;
    refuse(file_, "weight_map is not a JSON object", write_again);
  }

  void take_shard(const std::string& tensor, const json_event& event) {
    if (event.kind != json_kind::text) {
      refuse_tensor(file_, "the shard is not a string", tensor, write_again);
    }
    if (!is_plain_file_name(event.text)) {
      refuse_tensor(file_,
                    fmt::format("the shard {} is not a plain file name", quoted_name(event.text)),
                    tensor, "keep shards beside the index and name them without a folder");
    }
    shards_.emplace(tensor, event.text);
  }

  std::string_view file_;
  std::map<std::string, std::string> shards_;
};

}  // namespace

std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     std::string_view file_name) {
  if (text.size() > max_shard_index_bytes) {
    refuse(file_name,
           fmt::format("the index is {} bytes long, the limit is {}", text.size(),
                       max_shard_index_bytes),
           "check that this is an index");
  }
  map_reader reader{file_name};
  const auto fault = formats::read_json(text, [&](const json_event& event) { reader.take(event); });
  if (fault) refuse(file_name, "the index " + describe(*fault), write_again);
  return std::move(reader).finish();
}

}  // namespace reprise
