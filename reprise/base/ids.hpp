// Strong ids: an id of one kind is never taken for another, nor for a count.
#pragma once

#include <cstdint>

namespace reprise {

// Handles of the seam. A device gives them out; zero is none.
enum class stream_id : std::uint64_t { none };
enum class event_id : std::uint64_t { none };
enum class graph_id : std::uint64_t { none };
enum class executable_id : std::uint64_t { none };

// One piece of work in a graph, and the nodes it became: one as a rule, none or several for
// external work. Given out by the capture, never twice in a process; a clone keeps the ids of its
// original. `none`: the work was not captured.
enum class node_id : std::uint64_t { none };

// One run of a step, recorded or not. Increases over the whole process.
enum class replay_id : std::uint64_t { none };

}  // namespace reprise
