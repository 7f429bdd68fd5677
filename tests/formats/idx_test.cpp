// The idx reader: what it reads, plain and packed, and what it refuses, byte by byte.
#include "reprise/formats/idx.hpp"

#include <zlib.h>

#include <vector>

#include "tests/formats/support.hpp"

namespace reprise {
namespace {

using test::as_bytes;

std::string size_of_axis(std::uint32_t extent) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift & 0xffU);
  return bytes;
}

std::string idx_of(const std::vector<std::uint32_t>& shape, const std::string& elements,
                   char type = 0x08) {
  std::string bytes{'\0', '\0', type, static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape) bytes += size_of_axis(extent);
  return bytes + elements;
}

std::string packed(const std::string& plain) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(plain.size() + 1000, '\0');
  std::string in = plain;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

idx_array parsed(const std::string& bytes) {
  return parse_idx(as_bytes(bytes), "digits");
}

std::string refused(const std::string& bytes) {
  return test::refusal([&] { parsed(bytes); });
}

const std::vector<std::uint8_t> six{'a', 'b', 'c', 'd', 'e', 'f'};

TEST(idx, a_plain_and_a_packed_file_say_the_same) {
  const std::string file = idx_of({3, 2}, "abcdef");
  for (const std::string& bytes : {file, packed(file)}) {
    const idx_array array = parsed(bytes);
    EXPECT_EQ(array.shape, (std::vector<std::int64_t>{3, 2}));
    EXPECT_EQ(array.elements, six);
  }
}

TEST(idx, an_axis_may_be_empty) {
  EXPECT_TRUE(parsed(idx_of({0, 7}, "")).elements.empty());
  EXPECT_TRUE(parsed(packed(idx_of({0}, ""))).elements.empty());
}

TEST(idx, more_than_one_chunk_is_read_whole) {
  std::string elements;
  for (std::size_t i = 0; i < 3'000'000; ++i) elements += static_cast<char>(i * 7 % 251);
  const std::string file = idx_of({3000, 1000}, elements);
  for (const std::string& bytes : {file, packed(file)}) {
    const idx_array array = parsed(bytes);
    EXPECT_EQ(std::string(array.elements.begin(), array.elements.end()), elements);
  }
}

TEST(idx, a_file_is_read_by_its_name_and_refused_by_it) {
  const test::scratch_folder folder;
  const auto good = folder.write("good", packed(idx_of({6}, "abcdef")));
  EXPECT_EQ(read_idx(good).elements, six);
  const auto bad = folder.write("bad", "no idx");
  EXPECT_NE(test::refusal([&] { read_idx(bad); }).find("bad"), std::string::npos);
  EXPECT_NE(test::refusal([&] { read_idx(folder.path() / "none"); }).find("none"),
            std::string::npos);
}

TEST(idx, what_is_wrong_is_said) {
  const auto says = [](const std::string& bytes, const std::string& what) {
    const std::string line = refused(bytes);
    EXPECT_NE(line.find(what), std::string::npos) << line;
    EXPECT_TRUE(line.starts_with("digits: ")) << line;
  };
  says("\x01\x02\x08\x01", "first two bytes");
  says(idx_of({6}, "abcdef", 0x0d), "type 0x0d");
  says(idx_of({}, ""), "0 dimensions");
  says(idx_of({1, 1, 1, 1, 1, 1, 1}, "a"), "7 dimensions");
  says(idx_of({3, 2}, "abcde"), "5 of 6");
  says(idx_of({3, 2}, "abcdefg"), "bytes follow");
  says(packed(idx_of({3, 2}, "abcdefg")), "bytes follow");
  says(packed(idx_of({3, 2}, "abcdef")) + "x", "bytes follow");
  says("", "ends inside its header");
}

TEST(idx, sizes_that_no_data_set_has_are_refused_before_memory_is_taken) {
  for (const std::vector<std::uint32_t>& shape : std::vector<std::vector<std::uint32_t>>{
           {0xffffffffU},
           {1U << 20, 1U << 20, 1U << 20},
           {0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}}) {
    EXPECT_NE(refused(idx_of(shape, "x")).find("promises more"), std::string::npos);
  }
  // The largest that is allowed, from a file that has none of it.
  EXPECT_NE(refused(idx_of({1U << 28}, "x")).find("ends after 1 of"), std::string::npos);
  EXPECT_NE(refused(packed(idx_of({1U << 28}, "x"))).find("ends after 1 of"), std::string::npos);
}

TEST(idx, every_cut_of_a_good_file_is_refused) {
  const std::string file = idx_of({3, 2}, "abcdef");
  for (const std::string& good : {file, packed(file)}) {
    for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
      EXPECT_NE(refused(good.substr(0, bytes)), "") << "cut to " << bytes << " bytes";
    }
  }
}

TEST(idx, every_changed_byte_is_refused_or_harmless) {
  const std::string file = idx_of({3, 2}, "abcdef");
  for (const std::string& good : {file, packed(file)}) {
    int refusals = 0;
    for (std::size_t at = 0; at < good.size(); ++at) {
      for (int value = 0; value < 256; ++value) {
        std::string bytes = good;
        bytes[at] = static_cast<char>(value);
        try {
          const idx_array array = parsed(bytes);
          std::int64_t count = 1;
          for (const std::int64_t extent : array.shape) count *= extent;
          EXPECT_EQ(static_cast<std::int64_t>(array.elements.size()), count);
        } catch (const usage_error&) {
          ++refusals;
        }
      }
    }
    EXPECT_GT(refusals, 2000);
  }
}

}  // namespace
}  // namespace reprise
