#include "reprise/replay/lease.hpp"

#include <fmt/format.h>

#include <atomic>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

replay_id next_replay() {
  static std::atomic<std::uint64_t> last{0};
  return replay_id{last.fetch_add(1, std::memory_order_relaxed) + 1};
}

const tensor_ref& detail::leased(const output_table& table, replay_id run, std::size_t slot) {
  if (table.current == run) return table.outputs[slot];
  landmark("lease: gone stale");
  const auto number = static_cast<std::uint64_t>(run);
  if (table.current == replay_id::none) {
    throw stale_error{
        fmt::format("the output of run {} is gone with the recording of step '{}'; read "
                    "or clone it before the recording is dropped",
                    number, table.step)};
  }
  throw stale_error{
      fmt::format("the output of run {} was overwritten by run {} of step '{}'; read or "
                  "clone it before the next run",
                  number, static_cast<std::uint64_t>(table.current), table.step)};
}

void step_result::check(signature_id of) const {
  if (of == table->of || REPRISE_MUTANT(outputs_of_another_step_are_given)) return;
  throw usage_error{
      fmt::format("step '{}': the output asked for is another step's; use the handles of "
                  "this step's signature",
                  table->step)};
}

}  // namespace reprise
