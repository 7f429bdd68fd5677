// How a graphed op answers a second forward while a backward is owed, and its other options.
//
// All are values with a text form, so that an op's options can be kept in a file and given on a
// command line: "slots:3".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace reprise {

// The second forward runs eagerly until the pending backward is done.
struct hold {
  bool operator==(const hold&) const = default;
};
// The second forward replays and takes ownership; the first backward later replays its own forward
// from what was saved for it.
struct recompute {
  bool operator==(const recompute&) const = default;
};
// `count` static states, taken in turn; a forward that finds none free does as `recompute` does.
struct slots {
  int count = 1;
  bool operator==(const slots&) const = default;
};

using on_conflict = std::variant<hold, recompute, slots>;

// The static states of one key.
inline int states_of(const on_conflict& policy) {
  const slots* const several = std::get_if<slots>(&policy);
  return several != nullptr ? several->count : 1;
}

// One call in a declared schedule: the forward or the backward of a micro-batch.
struct scheduled_call {
  bool is_backward = false;
  int micro_batch = 0;
};

// The slots that a schedule needs so that no backward is stale: the most forwards that are owed a
// backward at one time. Throws usage_error where a backward comes before its forward, or twice.
slots slots_for(std::span<const scheduled_call> schedule);
// Of all forwards of a window before its backwards.
slots slots_for_accumulation(int micro_batches);
// Of one-forward-one-backward in stage `stage` (0 is the first) of a pipeline of `depth` stages.
slots slots_for_pipeline(int depth, int stage, int micro_batches);

// What a returned gradient is. `cloned`: memory of its own. `moved`: the recording's memory, moved
// to memory of its own before the next backward writes there, if it is still alive then; for one
// thread.
enum class gradients : unsigned char { cloned, moved };

struct graphed_options {
  on_conflict conflict = hold{};
  gradients returned = gradients::cloned;
  int keys = 1;        // captured keys (shapes, scalars, precision); others run eagerly
  bool record = true;  // false: every call runs eagerly
  // Whether it logs why a call runs eagerly; whoever owns it may say that himself. No part of the
  // text.
  bool tells = true;

  bool operator==(const graphed_options&) const = default;
};

// "hold", "recompute", "slots:3". Parsing throws usage_error, naming what is possible.
std::string text_of(const on_conflict& policy);
on_conflict conflict_from(std::string_view text);
// "on-conflict=slots:3 gradients=cloned keys=1 record=yes".
std::string text_of(const graphed_options& options);
graphed_options options_from(std::string_view text);

}  // namespace reprise
