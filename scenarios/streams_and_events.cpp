// Work of several streams, ordered by events and by nothing else.
#include <array>

#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class streams_and_events_slip {
  none,
  no_wait_for_data,
  no_wait_for_room,
  recorded_too_early,
  result_read_elsewhere,
  waited_before_recorded,
  joins_all_but_one,
  declares_too_little,
};

// One stream makes, another uses; two lanes between them, so that both can be busy.
template <streams_and_events_slip made>
void pipeline(device_ref dev) {
  desk at{dev};
  const stream maker{dev};
  const stream user{dev};
  const std::array<number, 2> lanes{number{at.memory, few, maker}, number{at.memory, few, maker}};
  std::array<event, 2> full{event{dev}, event{dev}};
  std::array<event, 2> empty{event{dev}, event{dev}};
  const number sum = at.made(user, 0, few);
  order(maker, user);  // behind the pool, which gave the lanes to the maker

  for (std::int32_t round = 1; round <= 6; ++round) {
    const auto lane = static_cast<std::size_t>(round % 2);
    if (made != streams_and_events_slip::no_wait_for_room)
      empty[lane].wait(maker);  // nothing to wait for at first
    if (made == streams_and_events_slip::recorded_too_early) full[lane].record(maker);
    fill(maker, write{lanes[lane]}, round);
    if (made != streams_and_events_slip::recorded_too_early) full[lane].record(maker);
    if (made != streams_and_events_slip::no_wait_for_data) full[lane].wait(user);
    launch(user, add, read(lanes[lane]), inout(sum));
    empty[lane].record(user);
  }
  const stream_ref reader = made == streams_and_events_slip::result_read_elsewhere ? maker : user;
  const numbers result = values_of(reader, sum.all());
  user.synchronize();
  require_equal(result, numbers(few, 21), "the sum of what was made");
}

// One result for three streams, and theirs for one again; twice over the same events.
template <streams_and_events_slip made>
void fan_out(device_ref dev) {
  desk at{dev};
  const std::array<stream, 3> branches{stream{dev}, stream{dev}, stream{dev}};
  const std::array<number, 3> parts{at.made(at.s, 0), at.made(at.s, 0), at.made(at.s, 0)};
  const number x = at.made(at.s, 0);
  const number total = at.made(at.s, 0);
  for (const stream& branch : branches) order(at.s, branch);
  event ready{dev};
  std::array<event, 3> done{event{dev}, event{dev}, event{dev}};

  for (std::int32_t round = 1; round <= 3; ++round) {
    if (made == streams_and_events_slip::waited_before_recorded) {
      for (const stream& branch : branches) ready.wait(branch);
    }
    append(at.s, x, round);
    ready.record(at.s);
    for (std::size_t i = 0; i < branches.size(); ++i) {
      if (made != streams_and_events_slip::waited_before_recorded) ready.wait(branches[i]);
      launch(branches[i], add, read(x), inout(parts[i]));
      done[i].record(branches[i]);
    }
    for (std::size_t i = 0; i < branches.size(); ++i) {
      if (made == streams_and_events_slip::joins_all_but_one && i == 1) continue;
      done[i].wait(at.s);
    }
  }
  for (const number& part : parts) launch(at.s, add, read(part), inout(total));
  require_equal(value_of(at.s, total), 3 * (1 + 12 + 123), "the total of three branches");
}

// Two streams, two halves of one buffer: what does not overlap needs no order.
template <streams_and_events_slip made>
void halves(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number x = at.made(at.s, 0, 2 * few);
  const view<std::int32_t> low = x.all().subview(0, few);
  const view<std::int32_t> high = x.all().subview(few, few);
  order(at.s, other);
  for (std::int32_t digit = 1; digit <= 4; ++digit) {
    if (made == streams_and_events_slip::declares_too_little) {
      order(other, at.s);  // so that the access is all that is wrong
      launch(at.s, append_past, inout<std::int32_t>{low}, digit);
      order(at.s, other);
    } else {
      launch(at.s, append_digit, inout<std::int32_t>{low}, digit);
    }
    launch(other, append_digit, inout<std::int32_t>{high}, 5 - digit);
  }
  order(other, at.s);
  require_equal(values_of(at.s, low), numbers(few, 1234), "the lower half");
  require_equal(values_of(at.s, high), numbers(few, 4321), "the upper half");
}

}  // namespace

std::vector<scenario> stream_scenarios() {
  return {
      {"pipeline",
       "A maker and a user on two streams pass two lanes to and fro by events.",
       pipeline<streams_and_events_slip::none>,
       {},
       {{"no_wait_for_data",
         "The user does not wait for the event that says its lane is full.",
         {"race", "unwritten read"},
         pipeline<streams_and_events_slip::no_wait_for_data>},
        {"no_wait_for_room",
         "The maker fills a lane that the user may still be reading.",
         {"race"},
         pipeline<streams_and_events_slip::no_wait_for_room>},
        {"recorded_too_early",
         "The event is recorded before the work that it is to stand for.",
         {"race", "unwritten read"},
         pipeline<streams_and_events_slip::recorded_too_early>},
        {"result_read_elsewhere",
         "The result is read on a stream that never waited for it.",
         {"race"},
         pipeline<streams_and_events_slip::result_read_elsewhere>}}},
      {"fan_out",
       "Three streams share one result and are joined again, over the same events each time.",
       fan_out<streams_and_events_slip::none>,
       {},
       {{"waited_before_recorded",
         "The branches wait for an event that is recorded only afterwards.",
         {"race"},
         fan_out<streams_and_events_slip::waited_before_recorded>},
        {"joins_all_but_one",
         "One of the three branches is not waited for.",
         {"race"},
         fan_out<streams_and_events_slip::joins_all_but_one>}}},
      {"halves",
       "Two streams write two halves of one buffer, which needs no order between them.",
       halves<streams_and_events_slip::none>,
       {},
       {{"declares_too_little",
         "A kernel also writes the element behind the view that it was given.",
         {"undeclared access"},
         halves<streams_and_events_slip::declares_too_little>}}},
  };
}

}  // namespace reprise::scenarios
