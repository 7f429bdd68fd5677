// What the calls of a schedule give: the program once more on the host, in the order of its calls,
// by the plain ops (grad_plain.hpp). It knows nothing of frames, recordings or policies, since what
// a call gives does not depend on them.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "reprise/replay/philox_counter.hpp"
#include "scenarios/grad_plain.hpp"
#include "scenarios/grad_schedule.hpp"

namespace reprise::scenarios {

using on_host::floats;

// Values by the schedule's seed, none of them zero, between -1 and 1. Of the input of a forward in
// this slot, and as it is after it was spoiled `spoiled` times.
floats input_values(const grad_schedule& of, int id, int slot, int spoiled, int rows);
// Of the n-th backward of a forward, of its output in this slot.
floats cotangent_values(const grad_schedule& of, int id, int slot, int times, int rows);
floats first_weight(const grad_schedule& of, int op);

class expected_values {
 public:
  explicit expected_values(const grad_schedule& of);

  // Whether a call means something now; all below is for those that do.
  bool makes_sense(const scheduled& call) const;

  struct outputs {
    floats y;
    floats memory;  // empty but of `remembering`
  };
  outputs forward(const scheduled& call);
  outputs again(int id);
  struct results {
    bool is_stale = false;          // an operand or a weight was changed since: nothing is formed
    std::vector<floats> gradients;  // by input; empty where none is formed
    int times = 0;                  // which backward of the forward this is, from 0
  };
  results backward(const scheduled& call);
  void drop(int id) { calls_.at(id).has_ticket = false; }
  void spoil(int id) { ++calls_.at(id).spoiled; }
  void update(int op);
  void begin(const scheduled& span);
  void end();

  struct op_values {
    floats weight;
    floats gradient;  // of the weight; empty: none
    std::int32_t steps = 0;
    floats running;
  };
  const op_values& op(int i) const { return ops_.at(static_cast<std::size_t>(i)); }
  const philox_counter& counter() const { return counter_; }
  // The forward of this id, with its flags.
  const scheduled& made_by(int id) const { return calls_.at(id).made_by; }
  int spoiled(int id) const { return calls_.at(id).spoiled; }

 private:
  struct call_values {
    scheduled made_by;
    int spoiled = 0;         // so far
    int spoiled_at_run = 0;  // when the forward ran, or ran again
    bool has_ticket = false;
    floats x;
    floats b;
    floats weight;
    on_host::draw drawn;
    int weight_version = 0;
    int times = 0;  // backwards so far
  };
  struct open_span {
    int label;
    std::optional<philox_counter> put_back;  // of a recompute
  };

  outputs run(call_values& call);
  bool leaves_state() const;
  bool recomputes(int label) const;
  op_kind kind(const call_values& call) const;

  const grad_schedule& of_;
  std::vector<op_values> ops_;
  std::vector<int> weight_versions_;
  philox_counter counter_;
  std::map<int, call_values> calls_;
  std::map<int, philox_counter> begun_;  // by label: the counter when its span began
  std::vector<open_span> open_;
};

// The counter of a schedule's random numbers, as it begins.
philox_counter first_counter(const grad_schedule& of);

}  // namespace reprise::scenarios
