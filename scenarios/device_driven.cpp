// Graphs whose nodes are switched by kernels that run before them (rule 13).
#include <utility>
#include <vector>

#include "reprise/device/graph.hpp"
#include "reprise/ops/switch_nodes.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class device_driven_slip { none, switched_elsewhere };

template <class T>
void send(stream_ref on, const std::vector<T>& from, const buffer<T>& to) {
  copy(on, read<T>{view<const T>{from.data(), from.size()}}, write<T>{to});
}

template <device_driven_slip made>
void driven_nodes(device_ref dev) {
  desk at{dev};
  const stream planner{dev};
  const number x = at.made(at.s, 0);
  const buffer<std::uint64_t> handles{at.memory, 2, at.s};
  const buffer<std::uint8_t> on{at.memory, 2, at.s};
  node_id second{};
  node_id third{};
  graph recorded = capture(at.s, [&](stream_ref c) {
    launch(c, switch_nodes, read(handles), read(on));
    append(c, x, 1);
    second = append(c, x, 2);
    third = append(c, x, 3);
  });
  const fixed_executable step =
      std::move(recorded).instantiate_device_driven(at.s, {second, third});
  send(at.s,
       std::vector{static_cast<std::uint64_t>(step.handle(second)),
                   static_cast<std::uint64_t>(step.handle(third))},
       handles);
  order(at.s, planner);
  const std::vector<std::vector<std::uint8_t>> plans{{1, 1}, {0, 1}, {1, 0}, {0, 0}};
  for (const std::vector<std::uint8_t>& plan : plans) {
    if (made != device_driven_slip::switched_elsewhere) order(at.s, planner);
    send(planner, plan, on);
    order(planner, at.s);
    step.launch(at.s);
  }
  require_equal(value_of(at.s, x), 12313121, "the digits that were switched on");
}

}  // namespace

std::vector<scenario> device_driven_scenarios() {
  return {
      {"driven_nodes",
       "A kernel switches later nodes of its own graph, by a plan that changes each launch.",
       driven_nodes<device_driven_slip::none>,
       {},
       {{"switched_elsewhere",
         "The plan of the next launch is written while the launch before may still read it.",
         {"race"},
         driven_nodes<device_driven_slip::switched_elsewhere>}}},
  };
}

}  // namespace reprise::scenarios
