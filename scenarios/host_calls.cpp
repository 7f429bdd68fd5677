// Functions of the host, and work of other libraries, in the order of a stream and in graphs.
#include <memory>
#include <vector>

#include "reprise/device/graph.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class host_calls_slip { none, heard_on_another_stream, calls_the_device };

access read_by_host(const pinned<std::int32_t>& x) {
  return {x.data(), x.size() * sizeof(std::int32_t), false};
}

// The host hears each replay in order; the graph goes on when it has heard.
template <host_calls_slip made>
void heard_by_the_host(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number x = at.made(at.s, 0);
  const pinned<std::int32_t> told{dev, 1};
  event passed{dev};
  const auto heard = std::make_shared<numbers>();
  at.s.synchronize();
  const executable step = capture(at.s, [&](stream_ref c) {
                            append(c, x, 1);
                            copy(c, read(x), write(told));
                            if (made == host_calls_slip::heard_on_another_stream) return;
                            host_call(c, "hear", {read_by_host(told)}, [&, heard] {
                              heard->push_back(told[0]);
                              if (made == host_calls_slip::calls_the_device)
                                (void)passed.finished();
                            });
                          }).instantiate(at.s);
  for (int i = 0; i < 4; ++i) {
    step.launch(at.s);
    if (made == host_calls_slip::heard_on_another_stream) {
      host_call(other, "hear", {read_by_host(told)}, [&, heard] { heard->push_back(told[0]); });
    }
  }
  host_call(at.s, "hear", {read_by_host(told)}, [&, heard] { heard->push_back(-told[0]); });
  at.s.synchronize();
  other.synchronize();
  require_equal(*heard, {1, 11, 111, 1111, -1111}, "what the host heard");
}

// A library of somebody else's works between our kernels, and says what it touches.
template <host_calls_slip made>
void library_work(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number x = at.made(at.s, 0);
  at.s.synchronize();
  const auto library = [&](stream_ref on) {
    if (dev.bodies() == device_kind::cuda) {
      append(on, x, 7);  // this file has no kernels of its own for the native stream
      return;
    }
    const view<std::int32_t> all = x;
    external(on, "library", {{all.data(), all.bytes(), true}},
             [all](void*) { all[0] = 10 * all[0] + 7; });
  };
  const executable step = capture(at.s, [&](stream_ref c) {
                            append(c, x, 1);
                            library(c);
                            append(c, x, 2);
                          }).instantiate(at.s);
  step.launch(at.s);
  if (made != host_calls_slip::heard_on_another_stream) order(at.s, other);
  library(other);
  order(other, at.s);
  step.launch(at.s);
  require_equal(value_of(at.s, x), 1727172, "what kernels and library wrote");
}

}  // namespace

std::vector<scenario> host_call_scenarios() {
  return {
      {"heard_by_the_host",
       "A function of the host in a graph is called at each replay, in order.",
       heard_by_the_host<host_calls_slip::none>,
       {},
       {{"heard_on_another_stream",
         "The host function reads a result on a stream that did not wait for it.",
         {"race", "unwritten read"},
         heard_by_the_host<host_calls_slip::heard_on_another_stream>},
        {"calls_the_device",
         "The host function calls the device, which on a GPU may hang.",
         {"misuse"},
         heard_by_the_host<host_calls_slip::calls_the_device>}}},
      {"library_work",
       "Work of another library keeps its turn, eagerly and in a graph.",
       library_work<host_calls_slip::none>,
       {},
       {{"library_on_another_stream",
         "The library is given a stream that does not come after the kernels before it.",
         {"race"},
         library_work<host_calls_slip::heard_on_another_stream>}}},
  };
}

}  // namespace reprise::scenarios
