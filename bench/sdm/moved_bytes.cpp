#include "bench/sdm/moved_bytes.hpp"

namespace reprise::bench {

namespace {

constexpr std::int64_t f32_bytes = 4;

}  // namespace

moved_bytes moved_by_op(const sdm_sizes& s, std::int64_t stored) {
  const std::int64_t row = s.width * stored;
  const std::int64_t values = 3 * s.width * f32_bytes;
  const std::int64_t touched = s.writes + s.reads;
  const std::int64_t forward_rows = touched + 2 * s.writes;
  const std::int64_t cotangent_rows = 2 * touched + s.writes;
  const std::int64_t bank_rows = 2 * s.writes + s.reads;
  const std::int64_t tokens = s.streams * s.tokens;
  return {tokens * (forward_rows * row + values),
          tokens * ((cotangent_rows + bank_rows) * row + values)};
}

moved_bytes moved_by_bank_passes(const sdm_sizes& s, std::int64_t stored) {
  const std::int64_t banks = s.rows() * s.width * stored;
  const std::int64_t learned = s.slots * s.width * f32_bytes;
  return {learned + banks, 2 * banks + learned};
}

}  // namespace reprise::bench
