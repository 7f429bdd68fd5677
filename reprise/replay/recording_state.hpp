// What a recording owns. Seen by the recorder, which fills it, and by nobody else.
#pragma once

#include "reprise/replay/recording.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

struct recording::state {
  state(device_ref device, const step& what, bindings given)
      : terms{what.declared(), given},
        layout{given},
        memory{device, "recording of " + what.name()},
        inputs{device},
        table{std::make_shared<output_table>()} {
    table->step = what.name();
    table->of = what.declared().id();
  }

  contract terms;
  input_layout layout;
  pool memory;
  staging inputs;
  std::optional<run_memory> block;  // of exactly the size that the warm-up learned
  std::byte* staged = nullptr;
  std::optional<executable> replayed;
  std::size_t nodes = 0;
  std::shared_ptr<output_table> table;
  stream_order order;
};

}  // namespace reprise
