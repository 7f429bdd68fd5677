#include "apps/reprise/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "reprise/base/error.hpp"

namespace reprise::app {

void add_output_options(CLI::App& verb, output_options& into) {
  verb.add_option("--json", into.json, "write one JSON value to FILE, or to stdout (-)")
      ->expected(0, 1)
      ->default_str("-")
      ->option_text("[FILE|-]");
  verb.add_flag("--quiet", into.quiet, "print no text and no progress");
}

void check_json_target(const output_options& options) {
  if (!options.json || *options.json == "-") return;
  const std::filesystem::path folder = std::filesystem::path{*options.json}.parent_path();
  std::error_code ignored;
  const bool there = folder.empty() || std::filesystem::is_directory(folder, ignored);
  if (!there || std::filesystem::is_directory(*options.json, ignored)) {
    throw usage_error{
        fmt::format("--json {}: not a file in a folder that exists; give a file name, or "
                    "- for stdout",
                    *options.json)};
  }
}

void write_json(const output_options& options, const nlohmann::json& value) {
  const std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (*options.json == "-") {
    std::cout << text << '\n';
    return;
  }
  std::ofstream file{*options.json, std::ios::binary};
  file << text << '\n';
  if (!file.flush()) {
    throw error{fmt::format("--json {}: the file cannot be written", *options.json)};
  }
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

}  // namespace reprise::app
