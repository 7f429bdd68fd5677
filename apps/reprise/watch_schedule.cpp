#include "apps/reprise/watch_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "reprise/base/error.hpp"
#include "reprise/formats/excerpt.hpp"

namespace reprise::app {

namespace {

// The pieces between separators; of an empty text one, which is empty.
std::vector<std::string_view> pieces_of(std::string_view text, char between) {
  std::vector<std::string_view> all;
  for (;;) {
    const std::size_t end = text.find(between);
    all.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return all;
    text.remove_prefix(end + 1);
  }
}

// Of two texts of the option, which a line quotes.
std::string excerpt_of(std::string_view text) {
  return formats::excerpt(text, formats::most_quoted / 2);
}

struct layer_range {
  int first;
  int last;
};

// Of a part of a point_set, which has found it to be well formed. "*", "kind" and "kind:*" name
// none: they are whatever is watched of them.
std::vector<layer_range> layers_of(std::string_view part) {
  const std::size_t colon = part.find(':');
  if (colon == std::string_view::npos || part.substr(colon + 1) == "*") return {};
  std::vector<layer_range> all;
  for (const std::string_view range : pieces_of(part.substr(colon + 1), '+')) {
    layer_range made{};
    const auto [end, failed] =
        std::from_chars(range.data(), range.data() + range.size(), made.first);
    made.last = made.first;
    if (end != range.data() + range.size()) {
      std::from_chars(end + 1, range.data() + range.size(), made.last);
    }
    all.push_back(made);
  }
  return all;
}

}  // namespace

watch_schedule::watch_schedule(std::string_view text) {
  for (const std::string_view piece : pieces_of(text, ';')) {
    const std::size_t sign = piece.find('=');
    std::uint64_t from = 0;
    const char* const end = piece.data() + std::min(sign, piece.size());
    const auto [next, failed] = std::from_chars(piece.data(), end, from);
    if (sign == std::string_view::npos || failed != std::errc{} || next != end) {
      throw usage_error{
          fmt::format("--schedule {}: '{}' is no entry; give STEP=SET, with ; between them, such "
                      "as 0=none;8=resid_pre:2-3",
                      excerpt_of(text), excerpt_of(piece))};
    }
    if (!entries_.empty() && from <= entries_.back().from) {
      throw usage_error{
          fmt::format("--schedule {}: step {} comes behind step {}; give each step once, in order",
                      formats::excerpt(text), from, entries_.back().from)};
    }
    try {
      entries_.push_back({from, point_set{piece.substr(sign + 1)}});
    } catch (const usage_error& wrong) {
      throw usage_error{fmt::format("--schedule, step {}: {}", from, wrong.what())};
    }
  }
}

void watch_schedule::check(const std::vector<point>& known, const point_set& watched) const {
  for (const entry& of : entries_) {
    if (of.set.empty()) continue;
    for (const std::string_view part : pieces_of(of.set.text(), ',')) {
      check(of, part, known, watched);
    }
  }
}

void watch_schedule::check(const entry& of, std::string_view part, const std::vector<point>& known,
                           const point_set& watched) {
  const point_set named{part};
  const auto is_named = [&](const point& one) { return named.contains(one); };
  const std::string where = fmt::format("--schedule {}={}", of.from, excerpt_of(of.set.text()));
  if (std::ranges::none_of(known, is_named)) {
    throw usage_error{
        fmt::format("{}: '{}' is {}", where, excerpt_of(part), no_point_of_a_model_with(known))};
  }
  const auto refuse = [&](std::string_view what, bool is_there) {
    throw usage_error{fmt::format("{}: '{}' is not watched; name points of --watch {}{}", where,
                                  excerpt_of(what), formats::excerpt(watched.text()),
                                  is_there ? ", or watch it too" : "")};
  };
  const std::vector<layer_range> layers = layers_of(part);
  const auto is_taken = [&](const point& one) { return is_named(one) && watched.contains(one); };
  if (layers.empty() && std::ranges::none_of(known, is_taken)) refuse(part, true);
  const std::string_view kind = part.substr(0, part.find(':'));
  for (const layer_range& range : layers) {
    for (int layer = range.first; layer <= range.last; ++layer) {
      const point one{kind, layer};
      if (watched.contains(one)) continue;
      const bool is_there = std::ranges::any_of(
          known, [&](const point& p) { return p.kind == kind && p.layer == layer; });
      refuse(fmt::format("{}:{}", kind, layer), is_there);
    }
  }
}

std::string no_point_of_a_model_with(const std::vector<point>& known) {
  return fmt::format("no point of this model; it marks {}:0-{}", known.front().kind,
                     known.back().layer);
}

const point_set& watch_schedule::at(std::uint64_t decode_step) const {
  const auto behind = std::ranges::upper_bound(entries_, decode_step, {}, &entry::from);
  return behind == entries_.begin() ? all_ : std::prev(behind)->set;
}

}  // namespace reprise::app
