#include "workloads/denoise/denoiser_config.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise::denoise {

namespace {

using json = nlohmann::json;
using formats::refuse;

constexpr std::uintmax_t largest_file = 1 << 20;
constexpr const char* own_config = "give the denoiser's own config.json";

json read_object(const std::filesystem::path& file) {
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(file, failed);
  if (failed) refuse(file.native(), "the file cannot be read", own_config);
  if (size > largest_file) refuse(file.native(), "the file is larger than 1 MiB", own_config);
  std::ifstream in{file, std::ios::binary};
  json root = json::parse(in, nullptr, false);
  if (!root.is_object()) refuse(file.native(), "this is not a JSON object", own_config);
  return root;
}

class fields {
 public:
  fields(const std::filesystem::path& file, json root)
      : file_{file.native()}, root_(std::move(root)) {}  // braces would make it a list

  std::int64_t integer(const char* name, std::int64_t most) const {
    const json at = root_.value(name, json{});
    if (!at.is_number_unsigned() || at < 1 || at > most) {
      wrong(name, fmt::format("a whole number from 1 to {}", most));
    }
    return at.get<std::int64_t>();
  }

  float real(const char* name, double most) const {
    const json at = root_.value(name, json{});
    if (!at.is_number() || !(at.get<double>() > 0 && at.get<double>() <= most)) {
      wrong(name, fmt::format("a number above 0 and at most {}", most));
    }
    return at.get<float>();
  }

  std::vector<std::string> names(const char* name, std::size_t most) const {
    const json at = root_.value(name, json{});
    bool right = at.is_array() && !at.empty() && at.size() <= most;
    for (const json& each : at) right = right && each.is_string();
    if (!right) wrong(name, fmt::format("a list of 1 to {} names", most));
    return at.get<std::vector<std::string>>();
  }

  void require(const char* name, const char* value) const {
    if (root_.value(name, json{}) == json(value)) return;
    wrong(name, fmt::format("\"{}\", the one that is built", value));
  }

 private:
  [[noreturn]] void wrong(const char* name, const std::string& needed) const {
    refuse(file_, fmt::format("'{}' is missing or is not {}", name, needed), own_config);
  }

  std::string file_;
  json root_;
};

// Names by which a request can ask: none is taken for a number, for "none" or for two.
void check_names(const std::filesystem::path& file, const std::vector<std::string>& names) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    const bool is_number =
        !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
    const bool can_be_asked_for = !name.empty() && name != "none" && !is_number &&
                                  name.find(',') == std::string::npos && seen.insert(name).second;
    if (can_be_asked_for) continue;
    refuse(file.native(), fmt::format("'class_names' has the name {:?}", name),
           "give each class a name of its own without commas, no number and not none");
  }
}

}  // namespace

denoiser_config read_denoiser_config(const std::filesystem::path& file) {
  const fields in{file, read_object(file)};
  in.require("architecture", "pixel_denoiser");
  denoiser_config config;
  config.rows = in.integer("image_rows", 1024);
  config.columns = in.integer("image_columns", 1024);
  config.class_names = in.names("class_names", 4096);
  check_names(file, config.class_names);
  config.width = in.integer("width", 1 << 14);
  config.inner_width = in.integer("inner_width", 1 << 16);
  config.condition_width = in.integer("condition_width", 1 << 14);
  config.time_width = in.integer("time_width", 1 << 14);
  config.blocks = in.integer("blocks", 256);
  config.norm_epsilon = in.real("norm_epsilon", 1.0);
  if (config.time_width % 2 != 0) {
    refuse(file.native(), "'time_width' is odd, and a sinusoidal embedding is of pairs",
           own_config);
  }
  return config;
}

}  // namespace reprise::denoise
