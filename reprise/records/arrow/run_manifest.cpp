#include "reprise/records/arrow/run_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "reprise/formats/printable.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise {

namespace {

constexpr std::string_view segment_prefix = "segment-";
constexpr std::string_view segment_suffix = ".arrows";
constexpr std::string_view write_anew = "give the folder of a run, or record it again";

run_segment segment_of(const nlohmann::json& value) {
  return {.file = value.at("file").get<std::string>(),
          .closed = value.at("closed").get<bool>(),
          .batches = value.at("batches").get<std::uint64_t>(),
          .records = value.at("records").get<std::uint64_t>(),
          .bytes = value.at("bytes").get<std::uint64_t>()};
}

}  // namespace

std::string manifest_text(const run_manifest& manifest) {
  nlohmann::ordered_json segments = nlohmann::ordered_json::array();
  for (const run_segment& segment : manifest.segments) {
    segments.push_back({{"file", segment.file},
                        {"closed", segment.closed},
                        {"batches", segment.batches},
                        {"records", segment.records},
                        {"bytes", segment.bytes}});
  }
  const nlohmann::ordered_json value{{"reprise_records", manifest.schema},
                                     {"run", manifest.run},
                                     {"closed", manifest.closed},
                                     {"lost", manifest.lost},
                                     {"segments", segments}};
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
}

run_manifest parse_manifest(std::string_view text, const std::filesystem::path& file) {
  run_manifest made;
  try {
    const nlohmann::json value = nlohmann::json::parse(text);
    made.schema = value.at("reprise_records").get<std::uint32_t>();
    if (made.schema != record_schema_version) {
      formats::refuse(file.native(),
                      fmt::format("its records are of schema {} and this reads schema {}",
                                  made.schema, record_schema_version),
                      "use the version of reprise that wrote it");
    }
    made.run = value.at("run").get<std::string>();
    made.closed = value.at("closed").get<bool>();
    made.lost = value.value("lost", std::uint64_t{0});
    for (const nlohmann::json& segment : value.at("segments")) {
      made.segments.push_back(segment_of(segment));
    }
  } catch (const nlohmann::json::exception&) {
    formats::refuse(file.native(), "it is no manifest of records", write_anew);
  }
  for (const run_segment& segment : made.segments) {
    // A name with a folder in it would be read from elsewhere.
    if (is_segment_name(segment.file)) continue;
    formats::refuse(
        file.native(),
        fmt::format("it names {}, which is no segment", formats::quoted_name(segment.file)),
        write_anew);
  }
  return made;
}

run_manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / manifest_file;
  std::ifstream in{file, std::ios::binary};
  if (!in) {
    formats::refuse(folder.native(), "this is no run directory: no manifest.json in it can be read",
                    write_anew);
  }
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  return parse_manifest(text, file);
}

std::string segment_name(std::uint64_t number) {
  return fmt::format("{}{:06}{}", segment_prefix, number, segment_suffix);
}

bool is_segment_name(std::string_view name) {
  if (!name.starts_with(segment_prefix) || !name.ends_with(segment_suffix)) return false;
  if (name.size() < segment_prefix.size() + 6 + segment_suffix.size()) return false;
  const std::string_view digits = name.substr(
      segment_prefix.size(), name.size() - segment_prefix.size() - segment_suffix.size());
  return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace reprise
