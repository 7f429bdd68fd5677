#include "reprise/records/record_filter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise {

namespace {

using formats::quoted_name;

[[noreturn]] void refuse_filter(std::string_view field, std::string_view what) {
  throw usage_error{fmt::format(
      "a filter of records: {} {}; write fields such as point=resid_pre,layer=3,request=7,"
      "step=10-20 (point, content, layer, shard, run, step, request, token)",
      quoted_name(field), what)};
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

number_set numbers_of(std::string_view field, std::string_view text) {
  number_set made;
  while (true) {
    const std::size_t plus = std::min(text.find('+'), text.size());
    const std::string_view piece = text.substr(0, plus);
    const std::size_t dash = std::min(piece.find('-'), piece.size());
    const auto first = number_of(piece.substr(0, dash));
    const auto last = dash == piece.size() ? first : number_of(piece.substr(dash + 1));
    if (!first || !last) refuse_filter(field, "is no number and no range A-B");
    if (*first > *last) refuse_filter(field, "is a range that ends before it begins");
    made.ranges.push_back({*first, *last});
    if (plus == text.size()) return made;
    text.remove_prefix(plus + 1);
  }
}

record_content content_of(std::string_view field, std::string_view text) {
  if (text == "rows") return record_content::rows;
  if (text == "scores") return record_content::scores;
  refuse_filter(field, "is neither rows nor scores");
}

// Puts one field in. False: there is none of that name.
bool put_field(record_filter& into, std::string_view key, std::string_view field,
               std::string_view value) {
  const auto once = [&](bool there) {
    if (there) refuse_filter(field, "is given a second time");
  };
  if (key == "point") {
    once(into.point.has_value());
    into.point = value;
    return true;
  }
  if (key == "content") {
    once(into.content.has_value());
    into.content = content_of(field, value);
    return true;
  }
  number_set* const numbers = key == "layer"     ? &into.layer
                              : key == "shard"   ? &into.shard
                              : key == "run"     ? &into.run
                              : key == "step"    ? &into.step
                              : key == "request" ? &into.request
                              : key == "token"   ? &into.token
                                                 : nullptr;
  if (numbers == nullptr) return false;
  once(!numbers->ranges.empty());
  *numbers = numbers_of(field, value);
  return true;
}

}  // namespace

bool number_set::has(std::uint64_t number) const {
  return touches({number, number});
}

bool number_set::touches(range other) const {
  return ranges.empty() || std::ranges::any_of(ranges, [&](const range& mine) {
           return mine.first <= other.last && other.first <= mine.last;
         });
}

bool record_filter::takes(const tap_record& record) const {
  if (point && *point != record.kind) return false;
  if (content && *content != record.content) return false;
  if (!layer.ranges.empty() &&
      (record.layer < 0 || !layer.has(static_cast<std::uint64_t>(record.layer)))) {
    return false;
  }
  if (!shard.has(static_cast<std::uint64_t>(record.shard))) return false;
  if (!token.ranges.empty()) {
    if (record.rows <= 0 || record.first_row < 0) return false;
    const auto first = static_cast<std::uint64_t>(record.first_row);
    if (!token.touches({first, first + static_cast<std::uint64_t>(record.rows) - 1})) return false;
  }
  return run.has(record.run) && step.has(record.step) && request.has(record.request);
}

record_filter parse_record_filter(std::string_view text) {
  record_filter made;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view field = text.substr(0, comma);
    const std::size_t equals = field.find('=');
    if (equals == std::string_view::npos || equals + 1 == field.size()) {
      refuse_filter(field, "has no value");
    }
    if (!put_field(made, field.substr(0, equals), field, field.substr(equals + 1))) {
      refuse_filter(field, "is no field of a record");
    }
    const bool dangling = comma + 1 == text.size();
    if (dangling) refuse_filter("", "ends the text behind a comma");
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return made;
}

}  // namespace reprise
