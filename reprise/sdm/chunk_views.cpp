#include "reprise/sdm/chunk_views.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES::sdm {

void need_views(const char* op, const sdm_sizes& sizes, std::int64_t n,
                std::initializer_list<needed_view> views) {
  check_sizes(sizes);
  ops::need_at_most(op, "the width", sizes.width, part_columns * ops::most_blocks_across);
  if (n < 0 || n >= sizes.chunks()) {
    throw usage_error{fmt::format("{}: there is no chunk {} of {}; give one from 0 to {}", op, n,
                                  sizes.chunks(), sizes.chunks() - 1)};
  }
  for (const needed_view& one : views) {
    ops::need_elements(op, one.name, one.has, static_cast<std::size_t>(one.needs));
  }
}

}  // namespace reprise::REPRISE_BODIES::sdm
