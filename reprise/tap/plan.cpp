#include "reprise/tap/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

void step_plan::reserve(std::size_t points, std::size_t pieces) {
  publications_.reserve(points);
  layouts_.reserve(points);
  pieces_.reserve(pieces);
  runs_.reserve(pieces);
}

void step_plan::make(std::span<const tapped_point> points, std::span<const request_rows> requests,
                     bool marked) {
  publications_.clear();
  layouts_.clear();
  pieces_.clear();
  runs_.clear();
  bytes_ = 0;
  table_words_ = 0;
  marked_ = marked;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const tapped_point& one = points[i];
    const bool fires = one.enabled && one.rows.what() != row_mode::kind::none;
    if (!fires && !REPRISE_MUTANT(points_that_do_not_fire_are_planned)) continue;
    planned_publication made;
    made.producer = i;
    made.layout = layout_of(one, requests);
    const layout& of = layouts_[made.layout];
    made.bytes = static_cast<std::uint64_t>(of.rows) * one.row_bytes;
    made.exact = one.rows.what() != row_mode::kind::prefix;
    made.reserved = padded(made.bytes + (marked ? marker_bytes : 0));
    bytes_ += made.reserved;
    publications_.push_back(made);
  }
}

std::size_t step_plan::layout_of(const tapped_point& one, std::span<const request_rows> requests) {
  for (std::size_t i = 0; i < layouts_.size(); ++i) {
    if (layouts_[i].mode == one.rows && layouts_[i].source_rows == one.source_rows) return i;
  }
  layout made;
  made.mode = one.rows;
  made.source_rows = one.source_rows;
  made.first_piece = pieces_.size();
  try {
    add_pieces(one, requests);
  } catch (...) {
    publications_.clear();
    bytes_ = 0;
    throw;
  }
  made.pieces = pieces_.size() - made.first_piece;
  for (std::size_t i = made.first_piece; i < pieces_.size(); ++i) made.rows += pieces_[i].rows;
  made.first_run = runs_.size();
  add_runs(made);
  made.runs = runs_.size() - made.first_run;
  made.table = table_words_;
  if (made.runs > descriptor::most_own_runs) table_words_ += 1 + 2 * made.runs;
  layouts_.push_back(made);
  return layouts_.size() - 1;
}

// Whose rows are taken, in the order in which they lie in the payload.
void step_plan::add_pieces(const tapped_point& one, std::span<const request_rows> requests) {
  using kind = row_mode::kind;
  const kind what = one.rows.what();
  const std::size_t begin = pieces_.size();
  if (requests.empty()) {
    const bool one_row = what == kind::last && one.source_rows != 0;
    const std::int64_t first = one_row ? one.source_rows - 1 : 0;
    pieces_.push_back({no_request, first, one_row ? 1 : one.source_rows, 0, first});
    return;
  }
  const std::int64_t chunk = what == kind::chunked ? one.source_rows / one.rows.parts() : 0;
  for (const request_rows& r : requests) {
    const bool in_chunk = what == kind::chunked;
    const std::int64_t first = in_chunk ? r.place_in_batch * chunk : r.first;
    const std::int64_t room = in_chunk ? chunk : one.source_rows - r.first;
    const bool is_there = r.count >= 0 && first >= 0 && r.count <= room &&
                          (!in_chunk || r.place_in_batch < one.rows.parts());
    if (!is_there) {
      throw usage_error{fmt::format(
          "point {}:{}: request {} has rows {} to {} of a tensor of {}; say the rows that it has",
          one.kind, one.layer, r.request, first, first + r.count - 1, one.source_rows)};
    }
    if (r.count == 0) continue;
    if (what == kind::last) {
      pieces_.push_back(
          {r.request, r.first_token + r.count - 1, 1, r.place_in_batch, first + r.count - 1});
    } else {
      pieces_.push_back({r.request, r.first_token, r.count, r.place_in_batch, first});
    }
  }
  const bool named = what == kind::all || what == kind::prefix;
  if (named || REPRISE_MUTANT(padding_counts_as_rows)) add_padding(begin, one.source_rows);
}

// The whole tensor leaves in the order of its rows, so what no request has is named too.
void step_plan::add_padding(std::size_t first, std::int64_t source_rows) {
  const auto begin = pieces_.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, pieces_.end(),
            [](const row_piece& a, const row_piece& b) { return a.source_row < b.source_row; });
  const std::size_t named = pieces_.size();
  std::int64_t at = 0;
  for (std::size_t i = first; i < named; ++i) {
    const row_piece piece = pieces_[i];
    if (piece.source_row < at) {
      throw usage_error{
          fmt::format("requests {} and another both have row {}; give each row to one request",
                      piece.request, piece.source_row)};
    }
    if (piece.source_row > at) {
      pieces_.push_back({no_request, at, piece.source_row - at, 0, at});
    }
    at = piece.source_row + piece.rows;
  }
  if (at < source_rows) pieces_.push_back({no_request, at, source_rows - at, 0, at});
  std::sort(pieces_.begin() + static_cast<std::ptrdiff_t>(first), pieces_.end(),
            [](const row_piece& a, const row_piece& b) { return a.source_row < b.source_row; });
}

// Pieces that lie side by side are one run.
void step_plan::add_runs(layout& into) {
  for (std::size_t i = 0; i < into.pieces; ++i) {
    const row_piece& piece = pieces_[into.first_piece + i];
    if (runs_.size() > into.first_run) {
      row_run& last = runs_.back();
      if (last.first + last.rows == piece.source_row) {
        last.rows += piece.rows;
        continue;
      }
    }
    runs_.push_back({piece.source_row, piece.rows});
  }
}

void step_plan::place(const ring_account& account) {
  std::uint64_t position = account.head();
  std::uint64_t sequence = account.next();
  for (planned_publication& one : publications_) {
    one.position = position;
    one.sequence = sequence++;
    position += one.reserved;
  }
}

void step_plan::write(std::span<std::uint64_t> words, std::size_t most_points,
                      const ring_account& account, std::uint64_t replay) const {
  const std::size_t tables = most_points * descriptor_words;
  if (this->words(most_points) > words.size()) {
    throw usage_error{
        fmt::format("a plan of {} points and {} runs takes {} words and there are {}; raise "
                    "monitor_options::most_runs",
                    publications_.size(), runs_.size(), this->words(most_points), words.size())};
  }
  std::ranges::fill(words.first(tables), std::uint64_t{0});
  for (const layout& of : layouts_) {
    if (of.runs > descriptor::most_own_runs) write_table(of, words.subspan(tables + of.table));
  }
  for (const planned_publication& one : publications_) {
    const std::span<std::uint64_t> said =
        words.subspan(one.producer * descriptor_words, descriptor_words);
    said[descriptor::position] = one.position % account.capacity();
    said[descriptor::capacity] = account.capacity();
    said[descriptor::most] = one.bytes;
    said[descriptor::slot] = account.slot_of(one.sequence);
    said[descriptor::tag] = account.tag_of(one.sequence);
    said[descriptor::replay] = replay;
    const layout& of = layouts_[one.layout];
    const bool is_own = of.runs <= descriptor::most_own_runs;
    if (is_own) write_table(of, said.subspan(descriptor::own_table));
    said[descriptor::table] =
        is_own ? one.producer * descriptor_words + descriptor::own_table : tables + of.table;
    said[descriptor::flags] = marked_ ? descriptor::marked : 0;
  }
}

void step_plan::write_table(const layout& of, std::span<std::uint64_t> to) const {
  std::size_t at = 0;
  to[at++] = of.runs;
  for (std::size_t i = 0; i < of.runs; ++i) {
    to[at++] = static_cast<std::uint64_t>(runs_[of.first_run + i].first);
    to[at++] = static_cast<std::uint64_t>(runs_[of.first_run + i].rows);
  }
}

bool step_plan::names(std::uint64_t request) const {
  return std::ranges::any_of(pieces_,
                             [&](const row_piece& piece) { return piece.request == request; });
}

}  // namespace reprise
