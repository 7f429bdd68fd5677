// Every rule of the format, and the line that a file which breaks it gets.
#include "reprise/formats/safetensors_header.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/formats/support.hpp"

namespace reprise {
namespace {

using test::as_bytes;
using test::entry;
using test::file_of;
using test::length_prefix;

safetensors_header parse(std::string_view file) {
  return parse_safetensors_header(as_bytes(file), file.size(), "w.safetensors");
}

std::string refusal(std::string_view file) {
  return test::refusal([&] { parse(file); });
}

// A file with one tensor "a" and `data_bytes` of data.
std::string one_tensor(std::string_view dtype, std::string_view shape, std::string_view offsets,
                       std::size_t data_bytes) {
  return file_of("{" + entry("a", dtype, shape, offsets) + "}", std::string(data_bytes, '\1'));
}

constexpr std::string_view copy_again = "download or copy the file again";
constexpr std::string_view write_again =
    "write the file again with a writer that keeps to the format";

std::string line(std::string_view what, std::string_view remedy) {
  return std::string{"w.safetensors: "}.append(what).append(", ").append(remedy);
}

TEST(safetensors_header, entries_are_told_in_the_order_of_their_bytes) {
  const safetensors_header header =
      parse(file_of("{" + entry("late", "F32", "[2,1]", "[4,12]") + "," +
                        entry("early", "BF16", "[2]", "[0,4]") + "}",
                    "0123456789ab"));
  ASSERT_EQ(header.tensors.size(), 2u);
  EXPECT_EQ(header.tensors[0].name, "early");
  EXPECT_EQ(header.tensors[0].type, dtype::bf16);
  EXPECT_EQ(header.tensors[0].shape, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(header.tensors[1].name, "late");
  EXPECT_EQ(header.tensors[1].type, dtype::f32);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(header.tensors[0].end, header.tensors[1].begin);
  EXPECT_EQ(header.tensors[1].end - header.tensors[1].begin, 8u);
}

TEST(safetensors_header, every_element_type_has_its_name_and_size) {
  const std::pair<std::string, dtype> types[] = {
      {"F32", dtype::f32}, {"F16", dtype::f16}, {"BF16", dtype::bf16}, {"F64", dtype::f64},
      {"I32", dtype::i32}, {"I64", dtype::i64}, {"U64", dtype::u64},   {"U8", dtype::u8}};
  for (const auto& [name, type] : types) {
    const std::size_t bytes = 3 * size_of(type);
    const safetensors_header header =
        parse(one_tensor(name, "[3]", "[0," + std::to_string(bytes) + "]", bytes));
    EXPECT_EQ(header.tensors.at(0).type, type) << name;
  }
}

TEST(safetensors_header, scalars_and_tensors_without_elements_are_tensors) {
  const safetensors_header header =
      parse(file_of("{" + entry("none_after", "U8", "[0,9223372036854775807]", "[4,4]") + "," +
                        entry("scalar", "F32", "[]", "[0,4]") + "," +
                        entry("none_before", "U8", "[3,0]", "[0,0]") + "}",
                    "0123"));
  ASSERT_EQ(header.tensors.size(), 3u);
  EXPECT_EQ(header.tensors[0].name, "none_before");
  EXPECT_EQ(header.tensors[1].name, "scalar");
  EXPECT_TRUE(header.tensors[1].shape.empty());
  EXPECT_EQ(header.tensors[2].name, "none_after");
  EXPECT_EQ(header.tensors[2].begin, header.tensors[2].end);
}

TEST(safetensors_header, a_file_without_tensors_is_a_file) {
  EXPECT_TRUE(parse(file_of("{}")).tensors.empty());
}

TEST(safetensors_header, spaces_may_pad_the_header) {
  EXPECT_EQ(parse(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "}     ", "x")).tensors.size(),
            1u);
}

TEST(safetensors_header, metadata_is_told) {
  const safetensors_header header = parse(file_of(R"({"__metadata__":{"format":"pt","k":""}})"));
  EXPECT_EQ(header.metadata, (std::map<std::string, std::string>{{"format", "pt"}, {"k", ""}}));
}

TEST(safetensors_header, the_start_of_the_file_is_enough) {
  const std::string start = file_of("{" + entry("a", "U8", "[1000]", "[0,1000]") + "}");
  const safetensors_header header =
      parse_safetensors_header(as_bytes(start), start.size() + 1000, "w.safetensors");
  EXPECT_EQ(header.tensors.at(0).begin, start.size());
  EXPECT_EQ(header.tensors.at(0).end, start.size() + 1000);
}

TEST(safetensors_header, a_start_that_ends_inside_the_header_is_refused) {
  const std::string file = file_of("{}      ");
  EXPECT_EQ(test::refusal([&] {
              parse_safetensors_header(as_bytes(file).first(12), file.size(), "w.safetensors");
            }),
            line("only a part of the header was read", "read all of it before parsing"));
}

TEST(safetensors_header, an_empty_file_is_refused) {
  EXPECT_EQ(refusal(""), line("the file is empty", copy_again));
}

TEST(safetensors_header, a_file_shorter_than_its_length_field_is_refused) {
  EXPECT_EQ(refusal("1234567"), line("the file ends inside its first 8 bytes", copy_again));
}

TEST(safetensors_header, a_header_longer_than_the_file_is_refused) {
  EXPECT_EQ(refusal(length_prefix(3) + "{}"),
            line("the header is longer than the file (it would end at byte 11 of 10)", copy_again));
}

TEST(safetensors_header, an_absurd_header_length_is_refused) {
  constexpr std::string_view remedy = "check that this is a safetensors file";
  EXPECT_EQ(refusal(length_prefix(100'000'001) + "{}"),
            line("the header would be 100000001 bytes long, the limit is 100000000", remedy));
  EXPECT_EQ(
      refusal(std::string(16, '\xff')),
      line("the header would be 18446744073709551615 bytes long, the limit is 100000000", remedy));
}

TEST(safetensors_header, a_git_lfs_pointer_is_told_as_one) {
  EXPECT_EQ(
      refusal("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"),
      line("this is a Git LFS pointer and not the file itself", "fetch it with git lfs pull"));
}

TEST(safetensors_header, a_header_that_is_not_an_object_is_refused) {
  const std::string expected =
      line("the header is not a JSON object (it does not begin with '{')", write_again);
  EXPECT_EQ(refusal(file_of("[]")), expected);
  EXPECT_EQ(refusal(file_of("7")), expected);
  EXPECT_EQ(refusal(file_of(" {}")), expected);
  EXPECT_EQ(refusal(file_of("\xef\xbb\xbf{}")), expected);
  EXPECT_EQ(refusal(file_of("")), expected);
}

TEST(safetensors_header, a_header_that_is_not_json_is_refused) {
  EXPECT_EQ(refusal(file_of("{nonsense")), line("the header is not JSON at byte 3", write_again));
  EXPECT_EQ(refusal(file_of("{} x")), line("the header is not JSON at byte 4", write_again));
}

TEST(safetensors_header, a_header_that_is_not_utf8_is_refused) {
  EXPECT_EQ(refusal(file_of("{\"\xff\":{}}")),
            line("the header is not UTF-8 at byte 3", write_again));
}

TEST(safetensors_header, a_zero_byte_in_the_header_hides_nothing) {
  EXPECT_EQ(refusal(file_of(std::string{"{}\0\0", 4})),
            line("the header is not JSON at byte 3", write_again));
}

TEST(safetensors_header, deep_nesting_is_refused_without_recursion) {
  std::string header = R"({"a":)";
  for (int level = 0; level < 5'000'000; ++level) header += R"({"":)";
  EXPECT_EQ(refusal(file_of(header)),
            line(R"(the header entry has an unknown field "" [tensor "a"])", write_again));
  EXPECT_EQ(refusal(file_of(R"({"a":{"shape":)" + std::string(20'000'000, '['))),
            line(R"(shape has a size that is not a whole number from 0 to 2^63-1 [tensor "a"])",
                 write_again));
}

TEST(safetensors_header, two_tensors_of_one_name_are_refused) {
  EXPECT_EQ(refusal(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "," +
                                entry("a", "U8", "[1]", "[1,2]") + "}",
                            "xy")),
            line(R"(the header has the name twice [tensor "a"])", write_again));
}

TEST(safetensors_header, a_field_that_comes_twice_is_refused) {
  EXPECT_EQ(refusal(file_of(R"({"a":{"dtype":"U8","dtype":"F32","shape":[],"data_offsets":[0,4]}})",
                            "0123")),
            line(R"(the header has the key "dtype" twice)", write_again));
}

TEST(safetensors_header, metadata_must_map_strings_to_strings) {
  EXPECT_EQ(refusal(file_of(R"({"__metadata__":"pt"})")),
            line("__metadata__ is not a JSON object of strings", write_again));
  for (const std::string value : {"1", "null", "{}", "[]"}) {
    EXPECT_EQ(refusal(file_of(R"({"__metadata__":{"k":)" + value + "}}")),
              line(R"(__metadata__ has a value that is not a string at "k")", write_again));
  }
}

TEST(safetensors_header, an_entry_that_is_not_an_object_is_refused) {
  for (const std::string value : {"1", "null", R"("x")", "[]"}) {
    EXPECT_EQ(refusal(file_of(R"({"a":)" + value + "}")),
              line(R"(the header entry is not a JSON object [tensor "a"])", write_again));
  }
}

TEST(safetensors_header, an_entry_that_lacks_a_field_is_refused) {
  EXPECT_EQ(refusal(file_of(R"({"a":{"shape":[],"data_offsets":[0,0]}})")),
            line(R"(the header entry has no dtype [tensor "a"])", write_again));
  EXPECT_EQ(refusal(file_of(R"({"a":{"dtype":"U8","data_offsets":[0,0]}})")),
            line(R"(the header entry has no shape [tensor "a"])", write_again));
  EXPECT_EQ(refusal(file_of(R"({"a":{"dtype":"U8","shape":[]}})")),
            line(R"(the header entry has no data_offsets [tensor "a"])", write_again));
}

TEST(safetensors_header, a_field_does_not_carry_over_from_the_tensor_before) {
  EXPECT_EQ(refusal(file_of("{" + entry("a", "U8", "[1]", "[0,1]") +
                                R"(,"b":{"shape":[1],"data_offsets":[1,2]}})",
                            "xy")),
            line(R"(the header entry has no dtype [tensor "b"])", write_again));
}

TEST(safetensors_header, an_unknown_field_is_refused) {
  EXPECT_EQ(refusal(file_of(R"({"a":{"scale":1}})")),
            line(R"(the header entry has an unknown field "scale" [tensor "a"])", write_again));
}

TEST(safetensors_header, an_unknown_dtype_is_refused_by_name) {
  constexpr std::string_view remedy = "convert it to one of F32, F16, BF16, F64, I32, I64, U64, U8";
  for (const std::string name : {"F8_E4M3", "BOOL", "f32", ""}) {
    EXPECT_EQ(refusal(one_tensor(name, "[1]", "[0,1]", 1)),
              line("the dtype \"" + name + "\" cannot be read [tensor \"a\"]", remedy));
  }
  EXPECT_EQ(refusal(file_of(R"({"a":{"dtype":7}})")),
            line(R"(dtype is not a string [tensor "a"])", write_again));
}

TEST(safetensors_header, a_size_that_is_not_a_whole_number_is_refused) {
  for (const std::string size : {"-1", "-0", "1.0", "1e3", "9223372036854775808", "1e400000",
                                 "99999999999999999999999", "null", "true", R"("1")", "[]", "{}"}) {
    const std::string told = refusal(one_tensor("U8", "[1," + size + "]", "[0,1]", 1));
    if (size == "1e400000") {
      EXPECT_EQ(told.find("w.safetensors: the header is not JSON at byte "), 0u) << told;
      continue;
    }
    EXPECT_EQ(told,
              line(R"(shape has a size that is not a whole number from 0 to 2^63-1 [tensor "a"])",
                   write_again))
        << size;
  }
}

TEST(safetensors_header, a_shape_that_is_not_a_list_is_refused) {
  EXPECT_EQ(refusal(one_tensor("U8", "1", "[0,1]", 1)),
            line(R"(shape is not a list of sizes [tensor "a"])", write_again));
}

TEST(safetensors_header, a_shape_of_more_sizes_than_the_limit_is_refused) {
  std::string shape = "[1";
  for (int size = 1; size < 64; ++size) shape += ",1";
  EXPECT_EQ(parse(one_tensor("U8", shape + "]", "[0,1]", 1)).tensors.at(0).shape.size(), 64u);
  EXPECT_EQ(refusal(one_tensor("U8", shape + ",1]", "[0,1]", 1)),
            line(R"(shape has more than 64 sizes [tensor "a"])", write_again));
}

TEST(safetensors_header, a_shape_whose_product_overflows_is_refused) {
  const std::string expected =
      line(R"(shape has more elements than can be counted [tensor "a"])", write_again);
  EXPECT_EQ(refusal(one_tensor("U8", "[4294967296,4294967296]", "[0,0]", 0)), expected);
  EXPECT_EQ(refusal(one_tensor("F32", "[4611686018427387904]", "[0,0]", 0)), expected);
  EXPECT_EQ(refusal(one_tensor("U8", "[0,4294967296,4294967296]", "[0,0]", 0)), expected);
}

TEST(safetensors_header, offsets_that_are_not_two_whole_numbers_are_refused) {
  EXPECT_EQ(refusal(one_tensor("U8", "[1]", "7", 1)),
            line(R"(data_offsets is not a list of two [tensor "a"])", write_again));
  for (const std::string offsets : {"[]", "[0]"}) {
    EXPECT_EQ(refusal(one_tensor("U8", "[1]", offsets, 1)),
              line(R"(data_offsets is not a list of two [tensor "a"])", write_again));
  }
  EXPECT_EQ(refusal(one_tensor("U8", "[1]", "[0,1,2]", 1)),
            line(R"(data_offsets has more than two offsets [tensor "a"])", write_again));
  for (const std::string offsets : {"[-1,0]", "[0,1.0]", "[0,18446744073709551616]", "[0,[1]]"}) {
    EXPECT_EQ(
        refusal(one_tensor("U8", "[1]", offsets, 1)),
        line(
            R"(data_offsets has an offset that is not a whole number from 0 to 2^64-1 [tensor "a"])",
            write_again))
        << offsets;
  }
}

TEST(safetensors_header, offsets_that_run_backwards_are_refused) {
  EXPECT_EQ(refusal(one_tensor("U8", "[4]", "[4,0]", 4)),
            line(R"(data_offsets run backwards (4 to 0) [tensor "a"])", write_again));
}

TEST(safetensors_header, data_outside_the_file_is_refused) {
  EXPECT_EQ(refusal(one_tensor("U8", "[4]", "[0,4]", 3)),
            line(R"(the data ends outside the file (at byte 4 of 3 data bytes) [tensor "a"])",
                 copy_again));
  EXPECT_EQ(refusal(one_tensor("U8", "[1]", "[18446744073709551614,18446744073709551615]", 1)),
            line("the data ends outside the file (at byte 18446744073709551615 of 1 data bytes) "
                 R"([tensor "a"])",
                 copy_again));
}

TEST(safetensors_header, offsets_that_do_not_fit_dtype_and_shape_are_refused) {
  EXPECT_EQ(
      refusal(one_tensor("F32", "[2]", "[0,7]", 8)),
      line(R"(data_offsets hold 7 bytes where dtype and shape need 8 [tensor "a"])", write_again));
  EXPECT_EQ(
      refusal(one_tensor("F32", "[]", "[0,0]", 0)),
      line(R"(data_offsets hold 0 bytes where dtype and shape need 4 [tensor "a"])", write_again));
}

TEST(safetensors_header, tensors_that_overlap_are_refused) {
  EXPECT_EQ(refusal(file_of("{" + entry("a", "U8", "[3]", "[0,3]") + "," +
                                entry("b", "U8", "[2]", "[2,4]") + "}",
                            "0123")),
            line(R"(the data overlaps that of "a" [tensor "b"])", write_again));
  EXPECT_EQ(refusal(file_of("{" + entry("a", "U8", "[4]", "[0,4]") + "," +
                                entry("b", "U8", "[4]", "[0,4]") + "}",
                            "0123")),
            line(R"(the data overlaps that of "a" [tensor "b"])", write_again));
}

TEST(safetensors_header, a_hole_between_tensors_is_refused) {
  EXPECT_EQ(refusal(file_of("{" + entry("a", "U8", "[1]", "[0,1]") + "," +
                                entry("b", "U8", "[1]", "[3,4]") + "}",
                            "0123")),
            line(R"(a hole of 2 bytes lies before the data [tensor "b"])", write_again));
  EXPECT_EQ(refusal(one_tensor("U8", "[1]", "[1,2]", 2)),
            line(R"(a hole of 1 bytes lies before the data [tensor "a"])", write_again));
}

TEST(safetensors_header, bytes_after_the_last_tensor_are_refused) {
  EXPECT_EQ(refusal(one_tensor("U8", "[1]", "[0,1]", 6)),
            line("5 bytes after the last tensor belong to none", write_again));
  EXPECT_EQ(refusal(file_of("{}", "x")),
            line("1 bytes after the last tensor belong to none", write_again));
}

TEST(safetensors_header, a_name_with_control_characters_stays_on_one_line) {
  EXPECT_EQ(refusal(file_of(R"({"a\nw.safetensors: fine\u001b[2J\u0000":1})")),
            line(R"(the header entry is not a JSON object )"
                 R"([tensor "a\x0aw.safetensors: fine\x1b[2J\x00"])",
                 write_again));
}

TEST(safetensors_header, a_file_name_with_a_line_break_stays_on_one_line) {
  EXPECT_EQ(test::refusal([] { parse_safetensors_header({}, 0, "a\nb"); }),
            "a\\x0ab: the file is empty, download or copy the file again");
}

TEST(safetensors_header, a_very_long_name_is_shortened) {
  EXPECT_EQ(refusal(file_of("{\"" + std::string(100'000, 'n') + "\":1}")),
            line("the header entry is not a JSON object [tensor \"" + std::string(64, 'n') + "..." +
                     std::string(24, 'n') + "\" (100000 bytes)]",
                 write_again));
}

}  // namespace
}  // namespace reprise
