// The rows of each request alone: a process of its own runs them one request at a time, eagerly,
// unpadded, with no tap and no capture, and copies every marked tensor to the host as it is marked.
//
// The process is this executable, called another way (main.cpp), so it goes wherever the tests go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "reprise/replay/marks.hpp"
#include "workloads/decode/model_config.hpp"

namespace reprise::test {

// By request, layer and token: the row, as bytes.
using row_name = std::tuple<std::uint64_t, int, std::int64_t>;
using row_map = std::map<row_name, std::vector<std::byte>>;

// What is run: the shipped model on prompts, or a small drawn one on tokens that are given.
enum class alone_model : std::uint8_t { shipped, small };

const std::vector<std::string>& watched_prompts();  // of the shipped model
inline constexpr std::int64_t watched_tokens = 6;   // that each of them generates

decode::model_config small_config();
inline constexpr std::uint64_t small_seed = 7;                // of its weights
const std::vector<std::vector<std::int32_t>>& small_texts();  // whole requests, token by token

// Runs the other process on this device, and reads what it wrote. Each is run once and kept. Fails
// the test where it could not run, or its calls of the device show a capture, a graph or a launch.
const row_map& rows_alone(alone_model of, const std::string& device);

// In the other process: writes them to this file. Returns its exit status.
int write_rows_alone(const std::string& of, const std::string& device, const std::string& file);
inline constexpr const char* alone_flag = "--write-rows-alone";

}  // namespace reprise::test
