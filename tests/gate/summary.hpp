// The record of one GPU gate: what scripts/gate.sh left in its results folder, judged.
//
//   date, device_code      the moment, and scripts/tree_hash.sh of what was built
//   doctor.json            `reprise doctor --json`
//   tests/NAME.{json,rc}   GoogleTest's own report and the exit status, for each name in
//   tests/list;
//                          NAME.PART.{json,rc} instead, for each name in tests/NAME.parts
//   decode/NAME.{json,rc}  one run of `reprise run decode`; summary.cpp has the table of them
//   sanitizer/TOOL_TEST    "clean", "errors", "no case ran", or "not run: why"
//
// Called by main.cpp on the machine with the GPU. Whatever is missing is a fault, not an exception.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace reprise::gate {

// `golden`: the cases of models/tiny-llama/golden.json. The record says `"green": true` only when
// every test and run was there and none has a fault.
nlohmann::json summarise(const std::filesystem::path& results, const nlohmann::json& golden);

// Why `record` cannot be docs/gpu.json for the device code with this hash; empty: it can.
std::string refusal(const nlohmann::json& record, const std::string& device_code);

// The same record for people: docs/gpu.md.
std::string page(const nlohmann::json& record);

// Throws std::runtime_error with one line that names the file.
nlohmann::json read_json(const std::filesystem::path& file);

}  // namespace reprise::gate
