// Whether the arrays of a call are as long as its sizes say. Bodies ask on the host, before any
// work.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/ops/rows.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES::sdm {

class extents {
 public:
  // Throws usage_error as check_sizes does.
  extents(const char* op, const sdm_sizes& sizes) : op_{op}, sizes_{sizes} { check_sizes(sizes); }

  // Throw usage_error, naming op and array, unless the array has `each` elements for every token
  // of every stream, or for every chunk of it.
  const extents& by_token(const char* array, std::size_t elements, std::int64_t each) const {
    return need(array, elements, sizes_.streams * sizes_.tokens * each);
  }
  const extents& by_chunk(const char* array, std::size_t elements, std::int64_t each) const {
    return need(array, elements, sizes_.streams * sizes_.chunks() * each);
  }

 private:
  const extents& need(const char* array, std::size_t elements, std::int64_t count) const {
    ops::need_elements(op_, array, elements, static_cast<std::size_t>(count));
    return *this;
  }

  const char* op_;
  sdm_sizes sizes_;
};

}  // namespace reprise::REPRISE_BODIES::sdm
