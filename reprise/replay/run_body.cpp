#include "reprise/replay/run_body.hpp"

namespace reprise {

body_run run_body(site at, const step& what, bindings given, const input_layout& layout,
                  run_memory& memory, staging* from, observers watching) {
  body_run run;
  run.staged = memory.take(layout.bytes(), at.place);
  if (from != nullptr) from->stage(at.stream, given, layout, run.staged, at.place);

  std::vector<tensor_ref> inputs(given.size());
  for (const binding& b : given) {
    const auto slot = static_cast<std::size_t>(b.slot);
    inputs[slot] = {run.staged + layout.offset(slot), b.to.type, b.to.shape,
                    contiguous_strides(b.to.shape)};
  }
  step_scope scope{what.declared(), at.stream, memory, inputs, watching, at.place};
  what.run(scope);
  run.outputs = scope.finish();
  return run;
}

}  // namespace reprise
