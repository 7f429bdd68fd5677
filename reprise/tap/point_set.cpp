#include "reprise/tap/point_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

// What lies between separators, empty pieces included.
std::vector<std::string_view> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0;;) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    if (end == text.size()) return pieces;
    begin = end + 1;
  }
}

bool is_kind(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == ' ';
  });
}

int layer_of(std::string_view text) {
  int layer = -1;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), layer);
  const bool whole = wrong == std::errc{} && end == text.data() + text.size() && text[0] != '-';
  return whole && layer < point_set::most_layers ? layer : -1;
}

}  // namespace

point_set::point_set(std::string_view text) : text_{text} {
  if (text == "none") return;
  if (text == "*") {
    all_ = true;
    return;
  }
  for (const std::string_view piece : pieces_of(text, ',')) parts_.push_back(part_of(piece));
}

point_set::part point_set::part_of(std::string_view text) const {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const std::string_view kind = text.substr(0, colon);
  if (kind == "none" || kind == "*") {
    throw usage_error{
        fmt::format("points '{}': '{}' stands alone; give it and nothing else", text_, kind)};
  }
  if (!is_kind(kind)) {
    throw usage_error{fmt::format(
        "points '{}': '{}' is no kind of point; write none, *, or kind:layers joined by "
        "commas, such as resid_pre:0-3+7",
        text_, kind)};
  }
  part made{std::string{kind}, {}, std::string{text}};
  if (colon == text.size()) return made;
  const std::string_view layers = text.substr(colon + 1);
  if (layers == "*") return made;
  for (const std::string_view piece : pieces_of(layers, '+')) {
    made.layers.push_back(range_of(piece));
  }
  return made;
}

std::pair<int, int> point_set::range_of(std::string_view text) const {
  const std::size_t dash = std::min(text.find('-'), text.size());
  const int first = text.empty() ? -1 : layer_of(text.substr(0, dash));
  const int last = dash == text.size()
                       ? first
                       : (dash + 1 == text.size() ? -1 : layer_of(text.substr(dash + 1)));
  if (first < 0 || last < 0) {
    throw usage_error{
        fmt::format("points '{}': '{}' are no layers; write *, 3, or 3-8, joined by +, each below "
                    "{}",
                    text_, text, most_layers)};
  }
  if (last < first) {
    throw usage_error{fmt::format("points '{}': '{}' ends before it begins; write {}-{}", text_,
                                  text, last, first)};
  }
  return {first, last};
}

bool point_set::part::contains(const point& where) const {
  if (where.kind != kind) return false;
  return layers.empty() || std::ranges::any_of(layers, [&](const auto& range) {
           return where.layer >= range.first && where.layer <= range.second;
         });
}

bool point_set::contains(const point& where) const {
  return all_ || std::ranges::any_of(parts_, [&](const part& one) { return one.contains(where); });
}

std::string point_set::unmatched(const std::vector<point>& known) const {
  for (const part& one : parts_) {
    if (std::ranges::none_of(known, [&](const point& p) { return one.contains(p); })) {
      return one.text;
    }
  }
  return {};
}

}  // namespace reprise
