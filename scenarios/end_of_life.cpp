// What is destroyed with launches in flight lasts until they are done (rule 16, D17).
#include <memory>
#include <optional>

#include "reprise/device/graph.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class end_of_life_slip { none, buffers_freed_first };

// Graph, clone, executables, pinned memory and a stream go while all of it is queued.
template <end_of_life_slip made>
void destroyed_in_flight(device_ref dev) {
  desk at{dev};
  number x = at.made(at.s, 0);
  std::optional<number> y{at.made(at.s, 0)};
  const auto heard = std::make_shared<int>(0);
  at.s.synchronize();
  {
    pinned<std::int32_t> source{dev, 1};
    source[0] = 4;
    node_id last{};
    std::optional<graph> whole{capture(at.s, [&](stream_ref c) {
      copy(c, read(source), write(*y));
      launch(c, add, read(*y), inout(x));
      host_call(c, "hear", {}, [heard] { ++*heard; });
      last = append(c, x, 5);
    })};
    const std::optional<graph> slim{whole->without({last})};
    const executable full_step = whole->instantiate(at.s);
    const executable slim_step = slim->instantiate(at.s);
    whole.reset();
    full_step.launch(at.s);
    slim_step.launch(at.s);
    full_step.launch(at.s);
  }
  if (made == end_of_life_slip::buffers_freed_first) {
    // Freed in the order of a stream that does not come after the launches.
    const stream elsewhere{dev};
    block gone{at.memory, sizeof(std::int32_t), at.s};
    const view<std::int32_t> word{reinterpret_cast<std::int32_t*>(gone.data()), 1};
    launch(at.s, append_digit, inout<std::int32_t>{x.all()}, 1);
    copy(at.s, read(x), write<std::int32_t>{word});
    gone.freed_on(elsewhere);
    gone = {};
    const number next{at.memory, 1, elsewhere};
    fill(elsewhere, write{next}, 0);
    elsewhere.synchronize();
  }
  {
    // A stream that goes waits for its own work, and what it ordered stays ordered.
    const stream brief{dev};
    order(at.s, brief);
    append(brief, x, 6);
    order(brief, at.s);
  }
  // x: 0 + 4 = 4, 45; 49; 53, 535; 5356.
  require_equal(value_of(at.s, x), 5356, "x after three launches");
  dev.api().settle();
  require_equal(*heard, 3, "how often the host was called");
  require_equal(heard.use_count(), 1, "owners of the host call's state");
}

}  // namespace

std::vector<scenario> end_of_life_scenarios() {
  return {
      {"destroyed_in_flight",
       "Graphs, executables, pinned memory and streams go with launches in flight.",
       destroyed_in_flight<end_of_life_slip::none>,
       {"pinned memory: kept by a graph", "sim: a launch waited for its executable"},
       {{"buffers_freed_first",
         "A block is freed in the order of a stream that does not come after its last use.",
         {"race", "use after free"},
         destroyed_in_flight<end_of_life_slip::buffers_freed_first>}}},
  };
}

}  // namespace reprise::scenarios
