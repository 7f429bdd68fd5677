// The index of a model that is spread over several safetensors files: which file has which tensor.
//
//   {"metadata": {...}, "weight_map": {"TENSOR": "model-00001-of-00002.safetensors", ...}}
//
// Called by model_files; works on text, so that it can be fuzzed without files. Cost: O(text)
// memory.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

namespace reprise {

inline constexpr std::size_t max_shard_index_bytes = 100'000'000;

// Tensor name to the name of its shard: a plain file name, to be looked for beside the index and
// nowhere else. `file_name` is for messages. Only weight_map is read; other keys may hold anything.
// Throws usage_error, one line, for text that is no such index. Safe from any thread.
std::map<std::string, std::string> parse_shard_index(std::string_view text,
                                                     std::string_view file_name);

}  // namespace reprise
