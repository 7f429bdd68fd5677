// interim
#pragma once
#include <cstddef>
namespace reprise {
struct touched_range {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool writes = false;
  bool operator==(const touched_range&) const = default;
};
}  // namespace reprise
