// Memory that is taken and freed inside a capture: each replay writes it again (D12).
#include <optional>

#include "reprise/device/graph.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class capture_memory_slip { none, kept_past_its_free, freed_before_the_join, external_freed };

// Per replay: total += x + 5 in line, side_total += 7 on a branch, and 9 beside it.
template <capture_memory_slip made>
void temporaries(device_ref dev) {
  desk at{dev};
  const stream side{dev};
  const number x = at.made(at.s, 1, few);
  const number total = at.made(at.s, 0, few);
  const number side_total = at.made(at.s, 0, few);
  at.s.synchronize();
  const graph recorded = capture(at.s, [&](stream_ref c) {
    view<std::int32_t> first;
    {
      const number temporary{at.memory, few, c};
      first = temporary;
      copy(c, read(x), write(temporary));
      if (made != capture_memory_slip::kept_past_its_free)
        launch(c, add, read(temporary), inout(total));
    }
    {
      const number again{at.memory, few, c};  // the same memory
      fill(c, write{again}, 5);
      launch(c, add, read(again), inout(total));
    }
    if (made == capture_memory_slip::kept_past_its_free) {
      launch(c, add, read<std::int32_t>{first}, inout(total));
    }
    order(c, side);
    std::optional<number> there{
        std::in_place, at.memory, few,
        made == capture_memory_slip::freed_before_the_join ? c : stream_ref{side}};
    fill(side, write{*there}, 7);
    launch(side, add, read(*there), inout(side_total));
    if (made == capture_memory_slip::freed_before_the_join) there.reset();
    const number here{at.memory, few, c};
    fill(c, write{here}, 9);
    launch(c, add, read(here), inout(total));
    there.reset();
    order(side, c);
  });
  const executable step = recorded.instantiate(at.s);
  for (int i = 0; i < 3; ++i) step.launch(at.s);
  require_equal(values_of(at.s, total.all()), numbers(few, 3 * 15), "the total in line");
  require_equal(values_of(at.s, side_total.all()), numbers(few, 3 * 7), "the total of the branch");
}

// A graph's memory is nobody else's while it lives, and is given back afterwards.
template <capture_memory_slip made>
void graph_memory(device_ref dev) {
  desk at{dev};
  std::optional<number> x{at.made(at.s, 2, few)};
  const number total = at.made(at.s, 0, few);
  at.s.synchronize();
  for (int round = 0; round < 2; ++round) {
    // A pool may go while a capture is open; its memory comes back when it is over.
    std::optional<pool> brief{std::in_place, dev, "brief"};
    (void)number{*brief, few, at.s};
    const executable step = capture(at.s, [&](stream_ref c) {
                              brief.reset();
                              const number inside{at.memory, few, c};
                              copy(c, read(*x), write(inside));
                              launch(c, add, read(inside), inout(total));
                            }).instantiate(at.s);
    if (made == capture_memory_slip::external_freed) x.reset();
    for (int i = 0; i < 3; ++i) {
      step.launch(at.s);
      const number eager = at.made(at.s, 1, few);  // never the graph's
      launch(at.s, add, read(eager), inout(total));
    }
    at.s.synchronize();
    if (made == capture_memory_slip::external_freed) break;
  }
  dev.api().settle();
  require_equal(values_of(at.s, total.all()), numbers(few, 2 * 3 * 3), "the total");
}

}  // namespace

std::vector<scenario> capture_memory_scenarios() {
  return {
      {"temporaries",
       "Temporaries inside a capture share memory in line and never across branches.",
       temporaries<capture_memory_slip::none>,
       {},
       {{"kept_past_its_free",
         "A captured kernel reads a temporary that was freed, and whose memory is used anew.",
         {"use after free", "thrown"},
         temporaries<capture_memory_slip::kept_past_its_free>},
        {"freed_before_the_join",
         "A temporary that a branch reads is freed before the branch is joined.",
         {"race", "use after free"},
         temporaries<capture_memory_slip::freed_before_the_join>}}},
      {"graph_memory",
       "Eager work between the launches of a graph never gets the graph's own memory.",
       graph_memory<capture_memory_slip::none>,
       {"slabs: put off"},
       {{"external_freed",
         "A buffer that a graph reads, but does not own, is freed before the graph is launched.",
         {"use after free"},
         graph_memory<capture_memory_slip::external_freed>}}},
  };
}

}  // namespace reprise::scenarios
