// Host memory as a source and as a target: pageable sources are staged at the call (D15), pinned
// ones are read when the copy runs.
#include <array>
#include <optional>

#include "reprise/device/graph.hpp"
#include "reprise/device/host_thread.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class host_memory_slip {
  none,
  pinned_source_rewritten,
  pinned_source_gone,
  slot_rewritten_too_early,
  staging_overwritten,
  result_read_too_early,
};

// Each replay sees the input that was staged just before it, and the host may reuse its memory.
template <host_memory_slip made>
void staged_inputs(device_ref dev) {
  constexpr std::int32_t rounds = 12;
  desk at{dev};
  const number x{at.memory, few, at.s};
  const number y{at.memory, few, at.s};
  const number log{at.memory, rounds, at.s};
  const graph recorded = capture(at.s, [&](stream_ref c) { copy(c, read(x), write(y)); });
  const executable step = recorded.instantiate(at.s);
  numbers pageable(few);
  std::optional<pinned<std::int32_t>> in_place{std::in_place, dev, few};
  numbers expected;
  for (std::int32_t round = 0; round < rounds; ++round) {
    if (made == host_memory_slip::none) {
      pageable.assign(few, round);
      copy(at.s, read_of(pageable), write(x));
      pageable.assign(few, -1);
    } else {
      for (std::size_t i = 0; i < few; ++i) (*in_place)[i] = round;
      copy(at.s, read(*in_place), write(x));
      if (made == host_memory_slip::pinned_source_gone) in_place.emplace(dev, few);
    }
    step.launch(at.s);
    const auto i = static_cast<std::size_t>(round);
    copy(at.s, read<std::int32_t>{y.all().subview(few - 1, 1)},
         write<std::int32_t>{log.all().subview(i, 1)});
    expected.push_back(round);
  }
  require_equal(values_of(at.s, log.all()), expected, "what the replays saw");
}

// A loader fills pinned slots, a worker uses them, and a slot waits until it has been read.
template <host_memory_slip made>
void pinned_slots(device_ref dev) {
  constexpr std::size_t slots = 3;
  constexpr std::size_t rounds = 8;
  desk at{dev};
  const stream loader{dev};
  const pinned<std::int32_t> ring{dev, slots};
  const number staged{at.memory, slots, loader};
  const number sum = at.made(at.s, 0);
  const pinned<std::int32_t> result{dev, 1};
  std::array<event, slots> loaded{event{dev}, event{dev}, event{dev}};
  std::array<event, slots> used{event{dev}, event{dev}, event{dev}};
  result[0] = 0;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t slot = round % slots;
    if (made != host_memory_slip::slot_rewritten_too_early) {
      wait_until(dev, [&] { return loaded[slot].finished(); });
    }
    ring[slot] = static_cast<std::int32_t>(round) + 1;
    const view<std::int32_t> place = staged.all().subview(slot, 1);
    if (made != host_memory_slip::staging_overwritten) used[slot].wait(loader);
    copy(loader, read<std::int32_t>{ring.all().subview(slot, 1)}, write<std::int32_t>{place});
    loaded[slot].record(loader);
    loaded[slot].wait(at.s);
    launch(at.s, add, read<std::int32_t>{place}, inout(sum));
    used[slot].record(at.s);
  }
  event done{dev};
  copy(at.s, read(sum), write(result));
  done.record(at.s);
  if (made != host_memory_slip::result_read_too_early)
    wait_until(dev, [&] { return done.finished(); });
  const std::int32_t seen = result[0];
  at.s.synchronize();
  require_equal(seen, 36, "the sum of what was loaded");
}

// A graph reads its pinned input at each replay, so the host waits before it writes the next.
template <host_memory_slip made>
void pinned_input(device_ref dev) {
  desk at{dev};
  const pinned<std::int32_t> in{dev, 1};
  const number x{at.memory, 1, at.s};
  const number total = at.made(at.s, 0);
  const executable step = capture(at.s, [&](stream_ref c) {
                            copy(c, read(in), write(x));
                            launch(c, add, read(x), inout(total));
                          }).instantiate(at.s);
  event consumed{dev};
  for (std::int32_t round = 1; round <= 5; ++round) {
    if (made != host_memory_slip::pinned_source_rewritten) consumed.synchronize();
    in[0] = round;
    step.launch(at.s);
    consumed.record(at.s);
  }
  require_equal(value_of(at.s, total), 15, "the total of all inputs");
}

}  // namespace

std::vector<scenario> host_memory_scenarios() {
  return {
      {"staged_inputs",
       "Inputs from pageable memory are seen by the next replay, though the host goes on at once.",
       staged_inputs<host_memory_slip::none>,
       {},
       {{"pinned_source_rewritten",
         "A pinned source is rewritten before the copy out of it has run.",
         {"stale source"},
         staged_inputs<host_memory_slip::pinned_source_rewritten>},
        {"pinned_source_gone",
         "A pinned source is given back before the copy out of it has run.",
         {"stale source", "use after free"},
         staged_inputs<host_memory_slip::pinned_source_gone>}}},
      {"pinned_slots",
       "Pinned slots are filled in turn, each when the copy before has read it.",
       pinned_slots<host_memory_slip::none>,
       {},
       {{"slot_rewritten_too_early",
         "A slot is filled again without asking whether it has been read.",
         {"stale source"},
         pinned_slots<host_memory_slip::slot_rewritten_too_early>},
        {"staging_overwritten",
         "The loader overwrites what the worker may not have used yet.",
         {"race"},
         pinned_slots<host_memory_slip::staging_overwritten>},
        {"result_read_too_early",
         "The host reads a pinned result without waiting for the copy.",
         {"thrown"},
         pinned_slots<host_memory_slip::result_read_too_early>}}},
      {"pinned_input",
       "A graph reads one pinned input at each replay, and the host waits for it.",
       pinned_input<host_memory_slip::none>,
       {},
       {{"rewritten_in_flight",
         "The input of the next replay is written while the one before may still read it.",
         {"stale source"},
         pinned_input<host_memory_slip::pinned_source_rewritten>}}},
  };
}

}  // namespace reprise::scenarios
