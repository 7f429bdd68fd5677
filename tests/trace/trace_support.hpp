// What the tests of traces share: a program that uses most of the seam, and running one on a device
// that is traced and counted.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "reprise/trace/rerun.hpp"
#include "reprise/trace/trace.hpp"
#include "reprise/trace/trace_file.hpp"
#include "reprise/trace/tracing.hpp"
#include "tests/device/support.hpp"

namespace reprise::test {

using all_counts = std::array<std::uint64_t, seam_calls>;

inline all_counts values_of(const call_counts& counts) {
  all_counts values{};
  for (std::size_t i = 0; i < seam_calls; ++i) values[i] = counts[static_cast<seam_call>(i)];
  return values;
}

struct traced_program {
  trace taken;
  all_counts counts{};
};

// From the opening of the device to its close.
inline traced_program run_traced(const std::string& spec,
                                 const std::function<void(device_ref)>& program) {
  const auto log = std::make_shared<trace_log>();
  const auto counts = std::make_shared<call_counts>();
  {
    const device opened{tracing(counting(open_bare(spec), counts), log)};
    program(opened);
  }
  return {log->so_far(), values_of(*counts)};
}

inline trace trace_of(const std::string& spec, const std::function<void(device_ref)>& program) {
  return run_traced(spec, program).taken;
}

// A captured fork with copies, fills and a host call; switches, changes, a clone; eager work of
// every kind that needs no kernels; and a capture that fails.
inline void forked_program(device_ref on) {
  const stream main{on};
  const stream side{on};
  pool memory{on, "traced"};
  const buffer<int> x{memory, 64, main};
  const buffer<int> y{memory, 64, main};
  const pinned<int> host{on, 64};
  const std::vector<int> pageable(64, 7);
  copy(main, read<int>{view<const int>{pageable.data(), pageable.size()}}, write<int>{x});
  copy(main, read<int>{x}, write<int>{y});

  event forked{on};
  event joined{on};
  node_id filled = node_id::none;
  const graph made = capture(main, [&](stream_ref c) {
    filled = fill(c, write<int>{x}, 1);
    forked.record(c);
    forked.wait(side);
    copy(side, read<int>{x}, write<int>{y});
    joined.record(side);
    joined.wait(c);
    copy(c, read<int>{y}, write<int>{view<int>{host.data(), host.size()}});
    host_call(c, "look", {{host.data(), 64 * sizeof(int), false}}, [] {});
  });
  executable replayed = made.instantiate(main);
  replayed.launch(main);
  replayed.enable(filled, false);
  replayed.launch(main);
  replayed.change_fill(filled, write<int>{y}, 3);
  replayed.enable(filled, true);
  replayed.launch(main);

  const node_id gone[] = {filled};
  const graph smaller = made.without(gone);
  const executable less = smaller.instantiate(main);
  less.launch(main);
  external(main, "library", {{static_cast<view<int>>(x).data(), 16, true}}, [](void*) {});
  EXPECT_THROW(capture(main, [&](stream_ref c) { c.synchronize(); }), capture_error);
  main.synchronize();
}

// Asks where a stream stands, before, in and after a capture.
inline void placed_program(device_ref on) {
  const stream s{on};
  device_api& api = on.api();
  const stream_id id = stream_ref{s}.id();
  EXPECT_EQ(api.place_in_capture(id).capture, 0U);
  (void)capture(s, [&](stream_ref c) {
    const capture_place begin = api.place_in_capture(id);
    host_call(c, "nothing", {}, [] {});
    const capture_place after = api.place_in_capture(id);
    EXPECT_TRUE(api.precedes(begin, id));
    EXPECT_TRUE(api.precedes(after, id));
  });
}

// How often `part` is in the text.
inline std::size_t times(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

// A text with these calls, for traces that no sound program gives.
inline trace hand_written(const std::string& calls) {
  return parse_trace("reprise-trace 1\ndevice \"cuda:0\" cuda\n" + calls +
                     "end calls=" + std::to_string(times(calls, "\n")) + " left_out=0\n");
}

}  // namespace reprise::test
