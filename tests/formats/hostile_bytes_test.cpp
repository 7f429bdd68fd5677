// Damaged copies of a good file, all of them: each is refused with one line, or is as sound as a
// good one. The fuzz targets (tests/fuzz) go on from here with bytes that nobody thought of.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>

#include "reprise/formats/safetensors_header.hpp"
#include "tests/formats/support.hpp"

namespace reprise {
namespace {

using test::as_bytes;
using test::entry;
using test::file_of;

std::string good_file() {
  return file_of(R"({"__metadata__":{"format":"pt"},)" + entry("a", "F32", "[2,1]", "[0,8]") + "," +
                     entry("b\\u00e9", "BF16", "[]", "[8,10]") + "," +
                     entry("c", "U8", "[0]", "[10,10]") + "}  ",
                 "0123456789");
}

void expect_sound(const safetensors_header& header, std::size_t file_bytes) {
  for (std::size_t at = 0; at < header.tensors.size(); ++at) {
    const safetensors_entry& tensor = header.tensors[at];
    std::uint64_t bytes = size_of(tensor.type);
    for (const std::int64_t size : tensor.shape) bytes *= static_cast<std::uint64_t>(size);
    EXPECT_EQ(tensor.end - tensor.begin, bytes);
    EXPECT_LE(tensor.end, file_bytes);
    if (at > 0) {
      EXPECT_EQ(tensor.begin, header.tensors[at - 1].end);
    }
  }
}

TEST(hostile_bytes, every_cut_of_a_good_file_is_refused) {
  const std::string file = good_file();
  for (std::size_t bytes = 0; bytes < file.size(); ++bytes) {
    EXPECT_NE(
        test::refusal([&] { parse_safetensors_header(as_bytes(file).first(bytes), bytes, "w"); }),
        "")
        << "cut to " << bytes << " bytes";
  }
}

TEST(hostile_bytes, every_changed_byte_is_refused_or_harmless) {
  const std::string good = good_file();
  int harmless = 0;
  int refused = 0;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string file = good;
      file[at] = static_cast<char>(value);
      try {
        expect_sound(parse_safetensors_header(as_bytes(file), file.size(), "w"), file.size());
        ++harmless;
      } catch (const usage_error& told) {
        EXPECT_EQ(std::string_view{told.what()}.find('\n'), std::string_view::npos);
        ++refused;
      }
    }
  }
  EXPECT_GT(harmless, 10 * 256);  // the data at least
  EXPECT_GT(refused, 20'000);
}

}  // namespace
}  // namespace reprise
