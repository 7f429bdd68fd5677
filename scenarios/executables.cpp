// Changing what an executable does while launches of it are in flight: nodes switched, parameters
// changed, a whole graph taken over, clones.
#include <optional>
#include <vector>

#include "reprise/device/graph.hpp"
#include "scenarios/desk.hpp"
#include "scenarios/lists.hpp"

namespace reprise::scenarios {

namespace {

enum class executables_slip {
  none,
  producer_switched_off,
  changed_to_memory_in_use,
  changed_to_freed_memory,
  updated_to_freed_memory,
  clone_at_once,
};

// Each launch keeps the nodes and the parameters that it was enqueued with.
template <executables_slip made>
void switches(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number x = at.made(at.s, 0);
  const number y = at.made(at.s, 0);
  const number seen = at.made(at.s, 0);
  std::optional<number> z{at.made(at.s, 0)};
  const number produced{at.memory, 1, at.s};  // by the graph alone
  at.s.synchronize();
  std::vector<node_id> digits;
  node_id produces{};
  const graph recorded = capture(at.s, [&](stream_ref c) {
    for (std::int32_t digit = 1; digit <= 3; ++digit) digits.push_back(append(c, x, digit));
    produces = fill(c, write{produced}, 4);
    launch(c, add, read(produced), inout(y));
  });
  executable step = recorded.instantiate(at.s);
  if (made == executables_slip::producer_switched_off) step.enable(produces, false);
  step.launch(at.s);
  step.enable(digits[0], false);
  change(at.s, step, digits[1], append_digit, inout(x), 8);
  step.launch(at.s);
  step.enable(digits[0], true);
  step.enable(digits[2], false);
  step.change_fill(produces, write{produced}, 5);
  step.launch(at.s);

  // From here on the third digit goes to z, which another stream uses as well.
  step.enable(digits[2], true);
  change(at.s, step, digits[2], append_digit, inout(*z), 3);
  append(other, *z, 7);
  if (made != executables_slip::changed_to_memory_in_use) order(other, at.s);
  if (made == executables_slip::changed_to_freed_memory) {
    at.s.synchronize();
    z.reset();
  }
  step.launch(at.s);
  if (z) copy(at.s, read(*z), write(seen));
  require_equal(value_of(at.s, x), 1238318 * 100 + 18, "the digits of four launches");
  require_equal(value_of(at.s, y), 4 + 4 + 5 + 5, "what was produced");
  require_equal(value_of(at.s, seen), 73, "what the changed node wrote");
}

// An executable takes all parameters of another graph; what was changed by hand stays changed.
template <executables_slip made>
void whole_graph_update(device_ref dev) {
  desk at{dev};
  const number x = at.made(at.s, 0);
  std::optional<number> y{at.made(at.s, 0)};
  at.s.synchronize();
  node_id second{};
  const auto two_digits = [&](const number& to, std::int32_t a, std::int32_t b) {
    return capture(at.s, [&](stream_ref c) {
      append(c, to, a);
      second = append(c, to, b);
    });
  };
  const graph other_digits = two_digits(x, 5, 6);
  const graph elsewhere = two_digits(*y, 7, 7);
  const graph longer = capture(at.s, [&](stream_ref c) {
    for (int i = 0; i < 3; ++i) append(c, x, 8);
  });
  const graph recorded = two_digits(x, 1, 2);
  executable step = recorded.instantiate(at.s);
  step.launch(at.s);
  change(at.s, step, second, append_digit, inout(x), 9);
  require(step.update(other_digits), "a graph of the same topology was refused");
  step.launch(at.s);
  require(!step.update(longer), "a graph of another topology was taken");
  step.launch(at.s);
  require(step.update(elsewhere), "a graph over other memory was refused");
  if (made == executables_slip::updated_to_freed_memory) {
    at.s.synchronize();
    y.reset();
  }
  step.launch(at.s);
  require_equal(value_of(at.s, x), 1259599, "x");
  if (y) require_equal(value_of(at.s, *y), 7, "y");
}

// A clone without some works runs beside its original, in turns.
template <executables_slip made>
void clones(device_ref dev) {
  desk at{dev};
  const stream other{dev};
  const number x = at.made(at.s, 0);
  at.s.synchronize();
  std::vector<node_id> ids;
  const graph recorded = capture(at.s, [&](stream_ref c) {
    for (std::int32_t digit = 1; digit <= 3; ++digit) ids.push_back(append(c, x, digit));
  });
  const executable whole = recorded.instantiate(at.s);
  const executable slim = recorded.without({ids[1]}).instantiate(other);
  whole.launch(at.s);
  if (made != executables_slip::clone_at_once) order(at.s, other);
  slim.launch(other);
  order(other, at.s);
  whole.launch(at.s);
  require_equal(value_of(at.s, x), 12313123, "what whole, slim and whole wrote");
}

}  // namespace

std::vector<scenario> executable_scenarios() {
  return {
      {"switches",
       "Nodes are switched and given other arguments while launches are in flight.",
       switches<executables_slip::none>,
       {},
       {{"producer_switched_off",
         "A node is switched off whose result another node of the graph still reads.",
         {"unwritten read"},
         switches<executables_slip::producer_switched_off>},
        {"changed_to_memory_in_use",
         "A node is changed to write memory that another stream is using.",
         {"race"},
         switches<executables_slip::changed_to_memory_in_use>},
        {"changed_to_freed_memory",
         "A node is changed to write a buffer that is freed before the launch.",
         {"use after free"},
         switches<executables_slip::changed_to_freed_memory>}}},
      {"whole_graph_update",
       "An executable takes the parameters of another graph, or refuses and stays as it was.",
       whole_graph_update<executables_slip::none>,
       {"update: refused"},
       {{"updated_to_freed_memory",
         "An executable is updated from a graph whose buffer is freed before the launch.",
         {"use after free"},
         whole_graph_update<executables_slip::updated_to_freed_memory>}}},
      {"clones",
       "A clone without one work is launched between two launches of its original.",
       clones<executables_slip::none>,
       {},
       {{"clone_at_once",
         "A clone is launched while its original may still be running.",
         {"race"},
         clones<executables_slip::clone_at_once>}}},
  };
}

}  // namespace reprise::scenarios
