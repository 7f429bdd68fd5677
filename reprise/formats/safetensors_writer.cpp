#include "reprise/formats/safetensors_writer.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"
#include "reprise/formats/whole_file.hpp"

namespace reprise::formats {

namespace {

std::string_view type_name(dtype type) {
  switch (type) {
    case dtype::f32: return "F32";
    case dtype::f16: return "F16";
    case dtype::bf16: return "BF16";
    case dtype::f64: return "F64";
    case dtype::i32: return "I32";
    case dtype::i64: return "I64";
    case dtype::u64: return "U64";
    case dtype::u8: return "U8";
  }
  return "?";
}

void check_tensor(const std::filesystem::path& file, const tensor_to_write& tensor) {
  if (well_formed_bytes(tensor.name) != tensor.name.size()) {
    refuse_tensor(file.native(), "its name is no UTF-8", tensor.name, "give it another");
  }
  std::size_t expected = size_of(tensor.type);
  for (const std::int64_t size : tensor.shape) expected *= static_cast<std::size_t>(size);
  if (expected != tensor.bytes.size()) {
    refuse_tensor(
        file.native(),
        fmt::format("its shape takes {} bytes and it has {}", expected, tensor.bytes.size()),
        tensor.name, "give as many as the shape says");
  }
}

}  // namespace

void write_safetensors(const std::filesystem::path& file,
                       const std::vector<tensor_to_write>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::set<std::string_view> names;
  std::size_t at = 0;
  for (const tensor_to_write& tensor : tensors) {
    check_tensor(file, tensor);
    if (!names.insert(tensor.name).second) {
      refuse_tensor(file.native(), "the name is there twice", tensor.name, "give each its own");
    }
    header[tensor.name] = {{"dtype", type_name(tensor.type)},
                           {"shape", tensor.shape},
                           {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data begins at a multiple of 8
  std::vector<std::byte> all;
  all.reserve(8 + text.size() + at);
  for (int shift = 0; shift < 64; shift += 8) {
    all.push_back(static_cast<std::byte>(std::uint64_t{text.size()} >> shift & 0xffU));
  }
  const auto letters = std::as_bytes(std::span{text});
  all.insert(all.end(), letters.begin(), letters.end());
  for (const tensor_to_write& tensor : tensors) {
    all.insert(all.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  if (write_whole(file, all)) return;
  throw error{
      fmt::format("{}: the tensors cannot be written here; give a file in a folder that takes one",
                  quoted_name(file.native()))};
}

}  // namespace reprise::formats
