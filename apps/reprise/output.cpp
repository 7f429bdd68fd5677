#include "apps/reprise/output.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>

#include "reprise/base/error.hpp"
#include "reprise/formats/whole_file.hpp"

namespace reprise::app {

void add_output_options(verb_ref verb, output_options& into) {
  verb.add_option("--json", into.json, "write one JSON value to FILE, or to stdout (-)")
      .alone_means("-")
      .option_text("[FILE|-]");
  verb.add_flag("--quiet", into.quiet, "print no text and no progress");
}

void check_file_target(std::string_view option, const std::string& file,
                       std::string_view otherwise) {
  namespace fs = std::filesystem;
  const fs::path target{file};
  const fs::path folder = target.has_parent_path() ? target.parent_path() : fs::path{"."};
  std::error_code ignored;
  const bool is_file = target.has_filename() && !fs::is_directory(target, ignored) &&
                       fs::is_directory(folder, ignored);
  if (!is_file) {
    throw usage_error{fmt::format("{} {:?}: not a file in a folder that exists; give a file name{}",
                                  option, file, otherwise)};
  }
  const bool there = fs::exists(target, ignored);
  if (access((there ? target : folder).c_str(), W_OK) != 0) {
    throw usage_error{fmt::format("{} {:?}: it cannot be written; give a file that can{}", option,
                                  file, otherwise)};
  }
}

void check_json_target(const output_options& options) {
  if (!options.json || *options.json == "-") return;
  check_file_target("--json", *options.json, ", or - for stdout");
}

void check_spares(std::string_view option, const std::string& made,
                  std::span<const std::filesystem::path> spared, std::string_view what) {
  namespace fs = std::filesystem;
  if (made.empty() || made == "-") return;
  std::error_code ignored;
  const fs::path target = fs::weakly_canonical(made, ignored);
  const bool is_spared = std::ranges::any_of(
      spared, [&](const fs::path& one) { return target == fs::weakly_canonical(one, ignored); });
  if (!is_spared) return;
  throw usage_error{fmt::format("{} {:?}: that is {}; give another", option, made, what)};
}

void check_json_spares(const output_options& options, std::span<const std::filesystem::path> spared,
                       std::string_view what) {
  if (options.json) check_spares("--json", *options.json, spared, what);
}

void check_picture_target(std::string_view option, const std::string& file,
                          const output_options& options) {
  namespace fs = std::filesystem;
  if (file == "-") {
    throw usage_error{fmt::format("{} -: pictures do not go to stdout; give a file name", option)};
  }
  check_file_target(option, file);
  std::error_code ignored;
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored)) {
    throw usage_error{
        fmt::format("{} {:?}: it is no regular file; give a file name", option, file)};
  }
  const bool one_file =
      options.json && *options.json != "-" &&
      fs::weakly_canonical(file, ignored) == fs::weakly_canonical(*options.json, ignored);
  if (one_file) throw usage_error{fmt::format("{} and --json name one file; give two", option)};
}

bool write_text(const std::string& file, std::string_view text) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::exists(file, ignored) || fs::is_regular_file(file, ignored)) {
    return formats::write_whole(file, std::as_bytes(std::span{text}));
  }
  std::ofstream device{file, std::ios::binary};
  device << text;
  device.close();
  return static_cast<bool>(device);
}

void write_json(const output_options& options, const nlohmann::json& value) {
  const std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (*options.json == "-") {
    if (!(std::cout << text << '\n').flush()) {
      throw error{"--json -: stdout cannot be written; give a file name"};
    }
    return;
  }
  if (write_text(*options.json, text + '\n')) return;
  throw error{fmt::format("--json {:?}: the file cannot be written; give another, or - for stdout",
                          *options.json)};
}

std::string picture_failure(const std::string& file, const std::function<grey_picture()>& make) {
  if (file.empty()) return {};
  const grey_picture picture = make();
  try {
    write_png(file, picture);
    return {};
  } catch (const error& failed) {
    return failed.what();
  }
}

void say(std::string_view line) {
  const std::string text = fmt::format("reprise: {}\n", line);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int exit_code_of(const std::string& failure, const std::string& unwritten) {
  const std::string& line = failure.empty() ? unwritten : failure;
  if (line.empty()) return 0;
  say(line);
  return 1;
}

bool is_terminal(std::FILE* stream) {
  return isatty(fileno(stream)) == 1;
}

}  // namespace reprise::app
