// What a recording owns. Seen by the recorder, which fills it, and by nobody else.
#pragma once

#include "reprise/replay/input_ring.hpp"
#include "reprise/replay/recording.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

struct recording::state {
  state(device_ref device, const step& what, bindings given)
      : terms{what.declared(), given},
        layout{given, what.declared().random() != nullptr},
        random{what.declared().random()},
        memory{device, "recording of " + what.name()},
        inputs{device},
        table{std::make_shared<output_table>()} {
    table->step = what.name();
    table->of = what.declared().id();
  }

  contract terms;
  input_layout layout;
  philox_counter* random;
  std::uint64_t draws = 0;  // of one run; none: no words are staged
  pool memory;
  std::optional<input_ring> ring;   // where the recording brings its own inputs
  staging inputs;                   // where it does not
  std::optional<run_memory> block;  // of exactly the size that the warm-up learned
  std::byte* staged = nullptr;
  std::optional<executable> replayed;
  std::size_t nodes = 0;
  std::shared_ptr<output_table> table;
  stream_order order;
};

}  // namespace reprise
