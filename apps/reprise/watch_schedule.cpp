#include "apps/reprise/watch_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "reprise/base/error.hpp"

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

// "*", "kind" and "kind:*" are whatever is watched of them.
bool names_layers(std::string_view part) {
  const std::size_t colon = part.find(':');
  return colon != std::string_view::npos && part.substr(colon + 1) != "*";
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
                      text, piece)};
    }
    if (!entries_.empty() && from <= entries_.back().from) {
      throw usage_error{
          fmt::format("--schedule {}: step {} comes behind step {}; give each step once, in order",
                      text, from, entries_.back().from)};
    }
    try {
      entries_.push_back({from, point_set{piece.substr(sign + 1)}});
    } catch (const usage_error& wrong) {
      throw usage_error{fmt::format("--schedule {}: {}", text, wrong.what())};
    }
  }
}

void watch_schedule::check(const std::vector<point>& known, const point_set& watched) const {
  std::vector<point> taken;
  for (const point& one : known) {
    if (watched.contains(one)) taken.push_back(one);
  }
  for (const entry& of : entries_) {
    const auto refuse = [&](std::string_view what) {
      throw usage_error{
          fmt::format("--schedule {}={}: '{}' is not watched; name points of --watch {}, or watch "
                      "it too",
                      of.from, of.set.text(), what, watched.text())};
    };
    if (const std::string none = of.set.unmatched(taken); !none.empty()) refuse(none);
    if (of.set.empty()) continue;
    for (const std::string_view part : pieces_of(of.set.text(), ',')) {
      if (!names_layers(part)) continue;
      const point_set named{part};
      for (const point& one : known) {
        if (!named.contains(one) || watched.contains(one)) continue;
        refuse(fmt::format("{}:{}", one.kind, one.layer));
      }
    }
  }
}

const point_set& watch_schedule::at(std::uint64_t decode_step) const {
  const auto behind = std::ranges::upper_bound(entries_, decode_step, {}, &entry::from);
  return behind == entries_.begin() ? all_ : std::prev(behind)->set;
}

}  // namespace reprise::app
