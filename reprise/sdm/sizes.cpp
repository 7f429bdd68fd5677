#include "reprise/sdm/sizes.hpp"

#include <fmt/format.h>

#include <limits>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

void need_one(const char* what, std::int64_t is) {
  if (is >= 1) return;
  throw usage_error{fmt::format("sdm: {} is {}; give at least 1", what, is)};
}

void need_at_most(const char* what, std::int64_t is, std::int64_t most, const char* why) {
  if (is <= most) return;
  throw usage_error{fmt::format("sdm: {} is {}, {}; give at most {}", what, is, why, most)};
}

// Of numbers that may each be any.
bool fits_31_bits(std::int64_t a, std::int64_t b, std::int64_t c) {
  constexpr auto most = static_cast<std::int64_t>(std::numeric_limits<std::int32_t>::max());
  return a <= most / b && a * b <= most / c;
}

}  // namespace

void check_sizes(const sdm_sizes& s) {
  need_one("streams", s.streams);
  need_one("slots", s.slots);
  need_one("width", s.width);
  need_one("writes", s.writes);
  need_one("reads", s.reads);
  need_one("chunk", s.chunk);
  if (s.tokens < 0) {
    throw usage_error{fmt::format("sdm: tokens is {}; give 0 or more", s.tokens)};
  }
  if (s.decays != 1 && s.decays != s.writes) {
    throw usage_error{
        fmt::format("sdm: there are {} decays a token; give 1, or one for each of its {} writes",
                    s.decays, s.writes)};
  }
  need_at_most("writes", s.writes, s.slots, "more than a stream has slots");
  need_at_most("reads", s.reads, s.slots, "more than a stream has slots");
  need_at_most("writes + reads", s.token_events(), most_sdm_events, "more than a chunk may hold");
  need_at_most("chunk", s.chunk, most_sdm_events / s.token_events(),
               "with more writes and reads than a block of a GPU sorts");
  if (!fits_31_bits(s.streams, s.slots, 1) ||
      !fits_31_bits(s.streams, s.chunks() == 0 ? 1 : s.chunks(), s.events())) {
    throw usage_error{fmt::format(
        "sdm: {} streams of {} slots and {} tokens have more rows or events than an index of 31 "
        "bits tells apart; give fewer streams or tokens a call",
        s.streams, s.slots, s.tokens)};
  }
}

}  // namespace reprise
