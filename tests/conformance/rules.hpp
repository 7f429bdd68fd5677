// The rules that every implementation of the seam keeps, one sentence each. The conformance suite
// has a test suite of that number for each, and docs/gpu.md lists what ran where.
#pragma once

#include <array>
#include <string_view>

namespace reprise::test {

struct rule {
  int number;
  std::string_view says;
};

inline constexpr std::array<rule, 23> rules{{
    {1, "A stream runs its work in order; across streams only events order it."},
    {2, "Copies from pageable memory are staged, and seen by the next work on the stream."},
    {3, "A capture starts on one stream; other threads and streams are not disturbed."},
    {4, "A capture forks by event waits; one that is not joined fails it, by the stream's name."},
    {5, "A call that cannot be captured fails the capture at once, by name; the stream goes on."},
    {6, "A wait for work outside a capture, or a capture inside one, is an error, never dropped."},
    {7, "Nodes are kernels, copies, fills, host calls and empty; a host call fires each replay."},
    {8, "A capture of nothing is a valid graph, whose launch does nothing."},
    {9, "A template and its executables live apart; node ids come from the capture's tail."},
    {10, "New executables have every node on; changes hold for later launches and wait for none."},
    {11, "Only kernels, copies and fills are switched or removed; all else is refused by name."},
    {12, "A whole update needs the same topology, keeps changes, and leaves no trace if refused."},
    {13, "A device-driven graph is instantiated once, uploaded once, and changed by kernels only."},
    {14, "Instantiation uploads, before any change; instantiating anew is the way back."},
    {15, "The recording is the unit of order: a replay on another stream waits for the last one."},
    {16, "An executable that is destroyed with launches in flight goes when they are done."},
    {17, "Pool addresses are stable, layouts repeat, and reuse needs the free to come first."},
    {18, "Emptied pools give their bytes back; bytes are exact, and the driver's are estimated."},
    {19, "A graph owns the pinned memory that its copies read; rewritten slots wait their turn."},
    {20, "Scratch comes from the pool, by call and branch: two recordings never share it."},
    {21, "Random draws continue one sequence, whether a step runs eagerly or is replayed."},
    {22, "Errors name call, device and line; a lost device says so; captures put off destruction."},
    {23, "Edges are bridged when a node is removed; nodes with programmatic edges stay."},
}};

}  // namespace reprise::test
