// The header of a safetensors file, checked until it can be trusted.
//
//   byte 0         8 bytes   N, the length of the header in bytes, unsigned, little endian
//   byte 8         N bytes   JSON, UTF-8: {"NAME": {"dtype": "BF16", "shape": [256, 192],
//                            "data_offsets": [0, 98304]}, ..., "__metadata__": {"KEY": "TEXT"}};
//                            begins with '{', may end in spaces
//   byte 8 + N     the rest  the elements, row major, little endian; data_offsets count from here
//
// Format: https://github.com/huggingface/safetensors, "Format". Called by safetensors_file; works
// on bytes, so that it can be fuzzed without files. A file whose header parses has every byte of
// its data in exactly one tensor. Cost: O(header log tensors) time, O(header) memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/dtype.hpp"

namespace reprise {

inline constexpr std::uint64_t max_safetensors_header_bytes = 100'000'000;
inline constexpr std::size_t max_safetensors_rank = 64;

struct safetensors_entry {
  std::string name;
  dtype type;
  std::vector<std::int64_t> shape;  // empty for a scalar; a 0 makes a tensor without elements
  std::uint64_t begin;              // bytes from the start of the file
  std::uint64_t end;                // begin + elements x size_of(type)
};

struct safetensors_header {
  std::vector<safetensors_entry> tensors;       // in the order of their bytes
  std::map<std::string, std::string> metadata;  // what __metadata__ holds
};

// `file_start` is the file, or as much of its start as holds the header; `file_bytes` is the length
// of the whole file; `file_name` is for messages. Throws usage_error, one line, for everything that
// breaks the format, and for element types that Reprise does not have. Safe from any thread.
safetensors_header parse_safetensors_header(std::span<const std::byte> file_start,
                                            std::uint64_t file_bytes, std::string_view file_name);

}  // namespace reprise
