#include "scenarios/steps.hpp"

#include <fmt/format.h>

#include <utility>

namespace reprise::scenarios {

scaling::scaling(desk& at, std::int32_t first_factor, extra more)
    : factor{at.made(at.s, first_factor)}, total{at.made(at.s, 0, few)} {
  weight.value = as_tensor(factor.all());
  declared.uses("factor", weight);
  declared.state("total", as_tensor(total.all()));
  what.emplace(declared, [this, more = std::move(more)](step_scope& run) {
    const view<std::int32_t> made = run.make(y, run.shape(x));
    launch(run, times, read(run[x]), read(elements_of<std::int32_t>(weight.value)), write(made));
    launch(run, add, read<std::int32_t>{made}, inout(total));
    if (more) more(run, made);
  });
}

void scaling::reload(desk& at, stream_ref on, std::int32_t new_factor) {
  number loaded = at.made(on, new_factor);
  factor = std::move(loaded);
  weight.value = as_tensor(factor.all());
  weight.version.bump();
}

void require_counts(const step_counts& counts, std::uint64_t captured, std::uint64_t replayed,
                    std::uint64_t eager, std::source_location from) {
  const bool as_planned =
      counts.captured == captured && counts.replayed == replayed && counts.eager == eager;
  if (as_planned) return;
  require(false,
          fmt::format("steps ran as captured {}, replayed {}, eager {}; planned {}, {}, {}",
                      counts.captured, counts.replayed, counts.eager, captured, replayed, eager),
          from);
}

}  // namespace reprise::scenarios
