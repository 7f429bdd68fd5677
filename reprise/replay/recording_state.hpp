// What a recording owns. Seen by the recorder, which fills it, and by nobody else.
#pragma once

#include "reprise/replay/input_ring.hpp"
#include "reprise/replay/recording.hpp"
#include "reprise/replay/run_memory.hpp"
#include "reprise/replay/staging.hpp"
#include "reprise/replay/step.hpp"
#include "reprise/replay/stream_order.hpp"

namespace reprise {

struct recording::state {
  // One launch, and the break behind it. A segment without work has no executable.
  struct segment {
    std::optional<executable> launched;
    std::string why;  // of the break; both are empty behind the last segment
    break_work between;
    std::uint64_t runs = 0;
    double us = 0;  // of the host, over all runs of the break
  };

  state(device_ref on, const step& what, bindings given, std::uint64_t observed)
      : device{on},
        terms{what.declared(), given, observed},
        layout{what.declared(), given, direct_inputs(what.declared(), given)},
        memory{on, "recording of " + what.name()},
        inputs{on},
        table{std::make_shared<output_table>()} {
    table->belongs_to(what.declared());
  }

  // A replay in its parts, so that the recorder can run the segments of a step with breaks as it
  // makes them.
  replay_id begin(site at, const step& what, bindings given);
  void launch(site at, segment& one);
  void take_break(site at, const step& what, segment& one);
  void end(site at, const step& what, bindings given);
  void run_whole_body(site at, const step& what, bindings given);  // of a debug recording

  recording_bytes bytes() const;

  philox_counter* random_of(const step& what) const {
    return draws != 0 ? what.declared().random() : nullptr;
  }

  device_ref device;
  contract terms;
  input_layout layout;
  std::uint64_t draws = 0;  // of one run; none: no words are staged
  pool memory;
  std::optional<input_ring> ring;   // where the recording brings its own inputs
  staging inputs;                   // where it does not
  std::optional<run_memory> block;  // of exactly the size that the warm-up learned, or grown
  bool is_placed = false;           // the block is somebody else's, who counts it
  std::byte* staged = nullptr;
  std::vector<segment> segments;
  bool is_debug = false;  // the whole body is one break
  std::size_t nodes = 0;
  std::size_t bytes_per_node = 0;
  recording_phases phases;
  std::vector<staged_after_all> staged_inputs;
  std::uint64_t replays = 0;  // that have begun to run
  std::shared_ptr<output_table> table;
  std::vector<std::shared_ptr<recorded_marks>> marks;  // of observers
  stream_order order;
};

}  // namespace reprise
