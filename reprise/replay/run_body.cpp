#include "reprise/replay/run_body.hpp"

namespace reprise {

body_run run_body(site at, const step& what, bindings given, const input_layout& layout,
                  run_memory& memory, staging* from, observers watching, const input_ring* ring) {
  body_run run;
  run.staged = memory.take(layout.bytes(), at.place);
  if (from != nullptr) {
    from->stage(at.stream, given, layout, run.staged, at.place, what.declared().random());
  }

  if (ring != nullptr) ring->record(at, run.staged);

  std::vector<tensor_ref> inputs(given.size());
  for (const binding& b : given) {
    const auto slot = static_cast<std::size_t>(b.slot);
    inputs[slot] = {run.staged + layout.offset(slot), b.to.type, b.to.shape,
                    contiguous_strides(b.to.shape)};
  }
  const auto* const random =
      reinterpret_cast<const std::uint64_t*>(run.staged + layout.random_offset());
  step_scope scope{what.declared(), at.stream, memory, inputs, random, watching, at.place};
  what.run(scope);
  run.outputs = scope.finish();
  run.draws = scope.drawn();
  return run;
}

}  // namespace reprise
