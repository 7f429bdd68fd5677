#include "reprise/replay/lease.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

void step_result::check(signature_id asked) const {
  if (asked == of || REPRISE_MUTANT(outputs_of_another_step_are_given)) return;
  throw usage_error{
      fmt::format("step '{}': the output asked for is another step's; use the handles of "
                  "this step's signature",
                  table->step())};
}

}  // namespace reprise
