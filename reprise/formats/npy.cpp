#include "reprise/formats/npy.hpp"

#include <fmt/format.h>

#include <string>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/formats/whole_file.hpp"

namespace reprise::formats {

namespace {

std::string_view descr_of(dtype type) {
  switch (type) {
    case dtype::f32: return "<f4";
    case dtype::f16: return "<f2";
    case dtype::f64: return "<f8";
    case dtype::i32: return "<i4";
    case dtype::i64: return "<i8";
    case dtype::u64: return "<u8";
    case dtype::u8: return "|u1";
    case dtype::bf16: break;
  }
  throw usage_error{
      "an npy file of bf16: the format has no name for it; widen the elements to f32"};
}

}  // namespace

std::vector<std::byte> npy_header(dtype type, std::span<const std::int64_t> shape) {
  std::string sizes;
  for (const std::int64_t size : shape) sizes += fmt::format("{}, ", size);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                 descr_of(type), sizes);
  constexpr std::size_t before = 10;
  const std::size_t whole = (before + text.size() + 1 + 63) / 64 * 64;
  text.resize(whole - before - 1, ' ');
  text += '\n';
  std::string header{"\x93NUMPY\x01\x00", 8};
  header += static_cast<char>(text.size() & 0xffU);
  header += static_cast<char>(text.size() >> 8);
  header += text;
  const auto bytes = std::as_bytes(std::span{header});
  return {bytes.begin(), bytes.end()};
}

void write_npy(const std::filesystem::path& file, dtype type, std::span<const std::int64_t> shape,
               std::span<const std::byte> bytes) {
  std::size_t expected = size_of(type);
  for (const std::int64_t size : shape) expected *= static_cast<std::size_t>(size);
  if (expected != bytes.size()) {
    throw usage_error{
        fmt::format("an npy file whose shape takes {} bytes and that is given {}; give "
                    "as many as the shape says",
                    expected, bytes.size())};
  }
  std::vector<std::byte> all = npy_header(type, shape);
  all.insert(all.end(), bytes.begin(), bytes.end());
  if (write_whole(file, all)) return;
  throw error{
      fmt::format("{}: the array cannot be written here; give a file in a folder that takes one",
                  quoted_name(file.native()))};
}

}  // namespace reprise::formats
