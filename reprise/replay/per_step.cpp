#include "reprise/replay/per_step.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

void refuse_per_step(std::string_view name) {
  if (REPRISE_MUTANT(per_step_values_are_baked)) return;
  throw usage_error{
      fmt::format("the body reads the per-step value '{}' from the host, which a recording would "
                  "repeat for ever; declare it as an input, or read it in a break",
                  name)};
}

}  // namespace reprise
