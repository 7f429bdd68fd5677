#include "reprise/ops/rows.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"

namespace reprise::REPRISE_BODIES::ops {

std::int64_t whole_rows(const char* op, const char* argument, std::size_t elements,
                        std::int64_t width) {
  if (width < 1) {
    throw usage_error{fmt::format("{}: a row has {} elements; give at least 1", op, width)};
  }
  if (elements % static_cast<std::size_t>(width) != 0) {
    throw usage_error{fmt::format(
        "{}: {} has {} elements, which are no whole rows of {}; give a view of whole rows", op,
        argument, elements, width)};
  }
  return static_cast<std::int64_t>(elements / static_cast<std::size_t>(width));
}

void need_elements(const char* op, const char* argument, std::size_t elements, std::size_t need) {
  if (elements == need) return;
  throw usage_error{
      fmt::format("{}: {} has {} elements; give a view of {}", op, argument, elements, need)};
}

void need_at_most(const char* op, const char* size, std::int64_t is, std::int64_t most) {
  if (is <= most) return;
  throw usage_error{fmt::format("{}: {} is {}, more than a grid of blocks covers; give {} at most",
                                op, size, is, most)};
}

}  // namespace reprise::REPRISE_BODIES::ops
