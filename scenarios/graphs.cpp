// Captured branches, and executables that are launched on more than one stream.
#include "reprise/device/graph.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class graphs_slip {
  none,
  forked_too_early,
  read_before_the_join,
  read_on_the_first_stream,
  two_executables_at_once,
};

// A branch, and a branch of it: x grows in line, y follows it, z stands beside both.
template <graphs_slip made>
void forks(device_ref dev) {
  desk at{dev};
  const stream first{dev};
  const stream second{dev};
  const number x = at.made(at.s, 0);
  const number y = at.made(at.s, 0);
  const number z = at.made(at.s, 0);
  const number total = at.made(at.s, 0);
  at.s.synchronize();
  const graph recorded = capture(at.s, [&](stream_ref c) {
    if (made == graphs_slip::forked_too_early) order(c, first);
    append(c, x, 1);
    if (made != graphs_slip::forked_too_early) order(c, first);
    copy(first, read(x), write(y));
    order(first, second);
    append(second, z, 3);
    append(first, y, 2);
    if (made == graphs_slip::read_before_the_join) launch(c, add, read(y), inout(total));
    order(second, first);
    order(first, c);
    if (made != graphs_slip::read_before_the_join) launch(c, add, read(y), inout(total));
    launch(c, add, read(z), inout(total));
  });
  require_equal(static_cast<std::int64_t>(recorded.size()), 6, "the number of nodes");
  const executable step = recorded.instantiate(at.s);
  for (int i = 0; i < 3; ++i) step.launch(at.s);
  require_equal(value_of(at.s, x), 111, "x");
  require_equal(value_of(at.s, y), 1112, "y");
  require_equal(value_of(at.s, z), 333, "z");
  require_equal(value_of(at.s, total), 12 + 112 + 1112 + 3 + 33 + 333, "the total");
}

// One executable runs one launch at a time, whichever streams it is launched on.
template <graphs_slip made>
void two_streams(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number x = at.made(at.s, 0);
  at.s.synchronize();
  const graph recorded = capture(at.s, [&](stream_ref c) {
    append(c, x, 1);
    append(c, x, 2);
  });
  const executable step = recorded.instantiate(at.s);
  step.launch(at.s);
  step.launch(other);
  if (made == graphs_slip::read_on_the_first_stream) {
    const std::int32_t seen = value_of(at.s, x);
    other.synchronize();
    require_equal(seen, 1212, "x after both launches");
  }
  step.launch(at.s);
  // A second executable of the same graph knows nothing of the first.
  const executable twin = recorded.instantiate(other);
  if (made != graphs_slip::two_executables_at_once) order(at.s, other);
  twin.launch(other);
  order(other, at.s);
  require_equal(value_of(at.s, x), 12121212, "x after four launches");
}

// Eager work and launches take turns in the order of their stream; an empty graph does nothing.
void between_launches(device_ref dev) {
  desk at{dev};
  const number x = at.made(at.s, 0);
  const number y = at.made(at.s, 0);
  at.s.synchronize();
  const graph recorded = capture(at.s, [&](stream_ref c) {
    append(c, x, 1);
    copy(c, read(x), write(y));
    empty(c, "a place");
  });
  const executable step = recorded.instantiate(at.s);
  const executable nothing = capture(at.s, [](stream_ref) {}).instantiate(at.s);
  const number log = at.made(at.s, 0, 4);
  for (std::size_t i = 0; i < log.size(); ++i) {
    step.launch(at.s);
    nothing.launch(at.s);
    copy(at.s, read(y), write<std::int32_t>{log.all().subview(i, 1)});
    append(at.s, x, 2);
  }
  require_equal(values_of(at.s, log.all()), {1, 121, 12121, 1212121}, "what each launch left");
}

}  // namespace

std::vector<scenario> graph_scenarios() {
  return {
      {"forks",
       "A capture forks to a stream, and that to another, and joins both before it ends.",
       forks<graphs_slip::none>,
       {"sim: several works were ready at once"},
       {{"forked_too_early",
         "A branch is forked before the work that it reads from is captured.",
         {"race"},
         forks<graphs_slip::forked_too_early>},
        {"read_before_the_join",
         "The main branch reads a result of a fork before it has joined it.",
         {"race"},
         forks<graphs_slip::read_before_the_join>}}},
      {"two_streams",
       "One executable is launched on two streams, and its twin behind it.",
       two_streams<graphs_slip::none>,
       {"sim: a launch waited for its executable"},
       {{"read_on_the_first_stream",
         "The result of a launch on one stream is read on another that did not wait.",
         {"race"},
         two_streams<graphs_slip::read_on_the_first_stream>},
        {"two_executables_at_once",
         "Two executables that write one buffer are launched on two streams.",
         {"race"},
         two_streams<graphs_slip::two_executables_at_once>}}},
      {"between_launches",
       "Eager work between the launches of a graph keeps its turn.",
       between_launches,
       {},
       {}},
  };
}

}  // namespace reprise::scenarios
