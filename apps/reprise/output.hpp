// Where a command's results go: text for people, or one JSON value.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/reprise/verb.hpp"
#include "reprise/formats/png.hpp"

namespace reprise::app {

struct output_options {
  std::optional<std::string> json;  // a file, or "-" for stdout
  bool quiet = false;

  // Text for people: stdout, or stderr when the JSON has stdout or a file.
  std::FILE* people() const { return json ? stderr : stdout; }
};

void add_output_options(verb_ref verb, output_options& into);

// Throws usage_error, naming the option, when the file cannot be created; `otherwise` says what
// else could be given. Call it before any long work.
void check_file_target(std::string_view option, const std::string& file,
                       std::string_view otherwise = "");
void check_json_target(const output_options& options);
// What an option makes goes over none of these, which are `what`: inputs, or made by another
// option. An empty name and - are no file.
void check_spares(std::string_view option, const std::string& made,
                  std::span<const std::filesystem::path> spared, std::string_view what);
void check_json_spares(const output_options& options, std::span<const std::filesystem::path> spared,
                       std::string_view what);
// Of a picture, which is written whole: nothing but a regular file, and not the JSON's.
void check_picture_target(std::string_view option, const std::string& file,
                          const output_options& options);
void write_json(const output_options& options, const nlohmann::json& value);
// Whole or not at all; a device, such as /dev/stderr, as it is. False: it could not be written.
bool write_text(const std::string& file, std::string_view text);

// Writes the picture that `make` gives, where a file was asked for. A line where it could not be,
// to be told when the results have been: they took longer.
std::string picture_failure(const std::string& file, const std::function<grey_picture()>& make);

// One line on stderr, and nothing where that is closed.
void say(std::string_view line);

// Of a run that checked itself: 0; or 1, when `failure` says what was wrong, which is then told on
// stderr in one line; else when something is `unwritten`.
int exit_code_of(const std::string& failure, const std::string& unwritten = {});

bool is_terminal(std::FILE* stream);

}  // namespace reprise::app
