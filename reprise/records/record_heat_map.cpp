#include "reprise/records/record_heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/records/record_elements.hpp"

namespace reprise {

namespace {

// A place is a square of so many pixels, or fewer where the picture would be too wide to look at.
constexpr std::int64_t largest_square = 12;
constexpr std::int64_t wide_picture = 2'400;

}  // namespace

void record_heat_map::add(const tap_record& record) {
  if (record.content != record_content::rows || record.layer < 0) return;
  if (kind_.empty()) {
    kind_ = record.kind;
    shard_ = record.shard;
  }
  if (kind_ != record.kind) {
    throw usage_error{
        fmt::format("a heat map shows one kind of points and these are {} and {}; "
                    "choose one with --where point=KIND",
                    formats::quoted_name(kind_), formats::quoted_name(record.kind))};
  }
  if (shard_ != record.shard) {
    throw usage_error{
        fmt::format("a heat map shows one shard and these are {} and {} of {}; "
                    "choose one with --where shard=N",
                    shard_, record.shard, formats::quoted_name(kind_))};
  }
  for (std::int64_t row = 0; row < record.rows; ++row) {
    const double norm = row_norm(record, row);
    if (!std::isfinite(norm)) continue;
    mean& at = norms_[{record.layer, record.first_row + row}];
    at.sum += norm;
    ++at.count;
  }
}

std::optional<double> record_heat_map::norm_at(int layer, std::int64_t token) const {
  const auto found = norms_.find({layer, token});
  if (found == norms_.end()) return std::nullopt;
  return found->second.sum / static_cast<double>(found->second.count);
}

grey_picture record_heat_map::picture() const {
  if (norms_.empty()) {
    throw usage_error{
        "a heat map: no rows of points with layers are there; choose some with --where"};
  }
  const int first_layer = norms_.begin()->first.first;
  const std::int64_t layers = norms_.rbegin()->first.first - std::int64_t{first_layer} + 1;
  std::int64_t first_token = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_token = 0;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  for (const auto& [place, norm] : norms_) {
    first_token = std::min(first_token, place.second);
    last_token = std::max(last_token, place.second);
    const double value = norm.sum / static_cast<double>(norm.count);
    if (value > 0) least = std::min(least, value);
    most = std::max(most, value);
  }
  const std::int64_t tokens = last_token - first_token + 1;
  if (tokens > max_picture_side || layers > max_picture_side) {
    throw usage_error{
        fmt::format("a heat map of {} tokens and {} layers; a picture has {} at most, "
                    "choose some with --where token=A-B",
                    tokens, layers, max_picture_side)};
  }
  const std::int64_t square =
      std::clamp(wide_picture / std::max(tokens, layers), std::int64_t{1}, largest_square);
  grey_picture made{.width = tokens * square, .height = layers * square, .pixels = {}};
  made.pixels.assign(static_cast<std::size_t>(made.width * made.height), 0);
  // Black is what is not there: the smallest norm that is there is a dark grey.
  constexpr double darkest = 24;
  const double span = most > least ? std::log(most / least) : 1;
  for (const auto& [place, norm] : norms_) {
    const double value = norm.sum / static_cast<double>(norm.count);
    const double part = value <= 0 ? 0 : most > least ? std::log(value / least) / span : 1;
    const auto grey = static_cast<std::uint8_t>(std::lround(darkest + part * (255 - darkest)));
    const std::int64_t top = (place.first - first_layer) * square;
    const std::int64_t left = (place.second - first_token) * square;
    for (std::int64_t y = top; y < top + square; ++y) {
      std::fill_n(made.pixels.begin() + y * made.width + left, square, grey);
    }
  }
  return made;
}

}  // namespace reprise
