// The step that most scenarios of replay run: y = factor x, total += y. For this folder's .cpp
// files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "reprise/replay/cache.hpp"
#include "scenarios/desk.hpp"

namespace reprise::scenarios {

// The weight is a parameter, so its address and version are facts; the total is state. Its body may
// be given more to do.
class scaling {
 public:
  using extra = std::function<void(step_scope& run, view<std::int32_t> y)>;

  scaling(desk& at, std::int32_t factor, extra more = {});

  // Other weights at another place, as a reload does; the version is bumped.
  void reload(desk& at, stream_ref on, std::int32_t factor);

  signature declared{"scaling"};
  const input<std::int32_t> x = declared.in<std::int32_t>("x", {any});
  const output<std::int32_t> y = declared.out<std::int32_t>("y");
  number factor;
  number total;
  parameter weight;
  std::optional<step> what;
};

// Throws wrong_result unless the steps ran so.
void require_counts(const step_counts& counts, std::uint64_t captured, std::uint64_t replayed,
                    std::uint64_t eager,
                    std::source_location from = std::source_location::current());

}  // namespace reprise::scenarios
