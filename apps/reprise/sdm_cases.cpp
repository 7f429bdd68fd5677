#include "apps/reprise/sdm_cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise::app {

namespace {

using json = nlohmann::json;
using std::filesystem::path;

[[noreturn]] void refuse(const path& file, const std::string& why) {
  throw usage_error{fmt::format("{}: {}", formats::quoted_name(file.string()), why)};
}

// As much of a value as a line has room for.
std::string shown(const json& value) {
  constexpr std::size_t most = 40;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  std::string text = value.dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > most) text = text.substr(0, most) + "…";
  return text;
}

// One case file while it is read: what is asked of it is there, or it is refused by name.
class reader {
 public:
  explicit reader(const path& file) : file_{file} {
    std::ifstream from{file};
    if (!from) refuse(file, "the file cannot be read; give a case file or a folder of them");
    try {
      whole_ = json::parse(from);
    } catch (const json::parse_error& wrong) {
      refuse(file, fmt::format("is no JSON from byte {} on; give a case file", wrong.byte));
    }
    if (!whole_.is_object()) refuse(file, "is no JSON object; give a case file");
  }

  std::int64_t size(const char* name) const {
    const json& at = need(whole_, name);
    return whole_number(at, name);
  }
  std::string text(const char* name) const {
    const json& at = need(whole_, name);
    return formats::printable(at.is_string() ? at.get<std::string>() : file_.stem().string());
  }
  bool has(const char* name) const { return !need(whole_, name).is_null(); }

  template <class T>
  std::vector<T> array(const char* group, const char* name, std::vector<std::int64_t> shape) const {
    const std::string said = *group == '\0' ? name : fmt::format("{}.{}", group, name);
    const json& at = need(*group == '\0' ? whole_ : need(whole_, group), name);
    std::vector<T> values;
    flatten(at, said, shape, 0, values);
    return values;
  }
  std::vector<std::int64_t> chunks() const {
    const json& at = need(whole_, "chunks");
    std::vector<std::int64_t> sizes;
    if (at.is_array()) {
      for (const json& one : at) sizes.push_back(whole_number(one, "chunks"));
    }
    if (sizes.empty() || std::ranges::any_of(sizes, [](std::int64_t c) { return c < 1; })) {
      refuse(file_, "chunks is no list of whole numbers of 1 or more");
    }
    return sizes;
  }

 private:
  const json& need(const json& in, const char* name) const {
    const auto found = in.is_object() ? in.find(name) : in.end();
    if (found == in.end()) refuse(file_, fmt::format("'{}' is missing", name));
    return *found;
  }

  std::int64_t whole_number(const json& at, std::string_view name) const {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (!at.is_number_integer() || (at.is_number_unsigned() && at.get<std::uint64_t>() > most)) {
      refuse(file_,
             fmt::format("{} holds {}, which is no whole number of 63 bits", name, shown(at)));
    }
    return at.get<std::int64_t>();
  }

  // Of numbers, those that f32 can hold.
  template <class T>
  T element(const json& at, const std::string& name) const {
    if constexpr (std::is_integral_v<T>) {
      const std::int64_t value = whole_number(at, name);
      if (value != static_cast<T>(value)) {
        refuse(file_, fmt::format("{} holds {}, which is no row", name, value));
      }
      return static_cast<T>(value);
    } else {
      if (!at.is_number() || !std::isfinite(static_cast<float>(at.get<double>()))) {
        refuse(file_, fmt::format("{} holds {}, which is no number of f32", name, shown(at)));
      }
      return at.get<T>();
    }
  }

  template <class T>
  void flatten(const json& at, const std::string& name, const std::vector<std::int64_t>& shape,
               std::size_t axis, std::vector<T>& to) const {
    if (axis == shape.size()) {
      to.push_back(element<T>(at, name));
      return;
    }
    if (!at.is_array() || at.size() != static_cast<std::size_t>(shape[axis])) {
      refuse(file_, fmt::format("{} is not of shape [{}]", name, fmt::join(shape, ", ")));
    }
    for (const json& one : at) flatten(one, name, shape, axis + 1, to);
  }

  path file_;
  json whole_;
};

void need_indices(const path& file, const char* name, const std::vector<std::int32_t>& indices,
                  const sdm_sizes& s, std::int64_t each) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i) / each;
    if (indices[i] / s.slots != token / s.tokens || indices[i] < 0) {
      refuse(file, fmt::format("inputs.{}: {} is no row of its stream", name, indices[i]));
    }
    if (static_cast<std::int64_t>(i) % each != 0 && indices[i] <= indices[i - 1]) {
      refuse(file, fmt::format("inputs.{}: the indices of token {} do not ascend", name, token));
    }
  }
}

sdm_case read_case(const path& file) {
  const reader from{file};
  sdm_case c;
  c.name = from.text("name");
  const std::int64_t p = from.size("P"), s = from.size("S"), d = from.size("D");
  const std::int64_t t = from.size("T"), w = from.size("W"), r = from.size("R");
  const std::int64_t g = from.size("G");
  c.sizes = {.streams = p,
             .slots = s,
             .width = d,
             .tokens = t,
             .writes = w,
             .reads = r,
             .decays = g,
             .chunk = 1};
  c.chunks = from.chunks();
  try {
    for (const std::int64_t chunk : c.chunks) {
      c.sizes.chunk = chunk;
      check_sizes(c.sizes);
    }
  } catch (const usage_error& e) {
    refuse(file, e.what());
  }

  c.bank = from.array<double>("inputs", "bank", {p * s, d});
  c.k_idx = from.array<std::int32_t>("inputs", "k_idx", {p, t, w});
  c.k_val = from.array<double>("inputs", "k_val", {p, t, w});
  c.v = from.array<double>("inputs", "v", {p, t, d});
  c.beta = from.array<double>("inputs", "beta", {p, t, 1});
  c.g = from.array<double>("inputs", "g", {p, t, g});
  c.q_idx = from.array<std::int32_t>("inputs", "q_idx", {p, t, r});
  c.q_val = from.array<double>("inputs", "q_val", {p, t, r});
  need_indices(file, "k_idx", c.k_idx, c.sizes, w);
  need_indices(file, "q_idx", c.q_idx, c.sizes, r);

  c.dy = from.array<double>("", "dy", {p, t, d});
  if (from.has("d_final_bank")) c.d_final_bank = from.array<double>("", "d_final_bank", {p * s, d});
  c.readings = from.array<double>("", "readings", {p, t, d});
  c.final_bank = from.array<double>("", "final_bank", {p * s, d});
  c.d_bank = from.array<double>("grads", "bank", {p * s, d});
  c.d_k_val = from.array<double>("grads", "k_val", {p, t, w});
  c.d_v = from.array<double>("grads", "v", {p, t, d});
  c.d_beta = from.array<double>("grads", "beta", {p, t, 1});
  c.d_g = from.array<double>("grads", "g", {p, t, g});
  c.d_q_val = from.array<double>("grads", "q_val", {p, t, r});
  return c;
}

}  // namespace

std::vector<sdm_case> read_sdm_cases(const std::vector<path>& paths) {
  std::vector<path> files;
  for (const path& one : paths) {
    if (!is_directory(one)) {
      files.push_back(one);
      continue;
    }
    std::vector<path> inside;
    for (const auto& entry : std::filesystem::directory_iterator{one}) {
      if (entry.path().extension() == ".json") inside.push_back(entry.path());
    }
    if (inside.empty()) refuse(one, "the folder has no *.json; give one with case files");
    std::ranges::sort(inside);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  std::vector<sdm_case> cases;
  for (const path& file : files) cases.push_back(read_case(file));
  return cases;
}

}  // namespace reprise::app
