// Schedules: what a program may ask of a few graphed ops, call by call, as a line of text that can
// be pasted back.
//
//   seed 7; scaled hold; noisy slots:2 moved keys=2; f1.0 f2.1+rows2 b1 b2+tf32 d1 u0
//
// Two ops, then six calls: two forwards (1 of op 0, 2 of op 1), their backwards, the ticket of 1 is
// dropped, the weight of op 0 is updated. grad_player.hpp runs a schedule on a device and compares
// all that it gives with a plain run and with a model of the rules. Calls that mean nothing, such
// as the backward of a forward that is not there, are passed over, so any part of a schedule is
// one; that is how those that fail are made short. Functions of this header may be called from any
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/grad/options.hpp"
#include "reprise/grad/precision.hpp"

namespace reprise::scenarios {

// grad_ops.hpp.
enum class op_kind : std::uint8_t { scaled, noisy, counted, rewinding, joined, remembering };
inline constexpr int op_kinds = 6;
std::string_view name_of(op_kind kind);

struct scheduled_op {
  op_kind kind = op_kind::scaled;
  graphed_options options;
  // Ops of one kind and number stand for one another (signature::same_work_as); 0: for none.
  int work = 0;

  bool operator==(const scheduled_op&) const = default;
};

enum class act : std::uint8_t {
  forward,    // f1.0: forward 1, of op 0
  infer,      // i1.0: the same, without a backward
  again,      // a1: forward 1 once more, as a checkpoint does; its ticket becomes that of 1
  backward,   // b1: of forward 1
  drop,       // d1: its ticket goes
  spoil,      // s1: its input is changed in place
  recall,     // m1: the state that it returned is read
  update,     // u0: the weight of op 0 moves by its gradient, which is dropped
  reset,      // reset: graphed::reset()
  span,       // [1: a checkpointed span of label 1 begins
  recompute,  // (1: its recompute begins
  end         // ]: the innermost span, or recompute, ends
};

struct scheduled {
  act what = act::forward;
  int id = 0;  // of the forward; of a span its label
  int op = 0;  // of a forward, or of what is updated
  // Of forwards.
  int rows = 3;          // of its inputs: +rows2
  bool alone = false;    // +alone: the optional input is left out
  bool on_host = false;  // +host: inputs lie in host memory, where they may
  bool into = false;     // +into: the output lies in the caller's memory
  // Of backwards.
  bool inputs = true;      // +weights: without gradients of inputs
  bool weights = true;     // +inputs: without gradients of parameters
  bool by_memory = false;  // +memory: the returned state has a cotangent
  // Of both, and +tf32 and +bf16.
  bool suspended = false;  // +suspended
  bool elsewhere = false;  // +other: on another stream, which waits for all before
  precision in_force{};

  bool operator==(const scheduled&) const = default;
};

struct grad_schedule {
  std::uint64_t seed = 0;  // of the values that inputs and cotangents have
  std::vector<scheduled_op> ops;
  std::vector<scheduled> calls;

  bool operator==(const grad_schedule&) const = default;
};

// "f2.1+rows2".
std::string text_of(const scheduled& call);
std::string text_of(const grad_schedule& of);
// Throws usage_error, naming the word that it does not know.
grad_schedule schedule_from(std::string_view text);

// The shapes that training gives schedules.
enum class schedule_shape : std::uint8_t {
  accumulation,  // windows of micro-batches, the last one short, each ended by an update
  pipeline,      // one forward, one backward: each op is a stage
  interleaved,   // two rows of micro-batches that run into one another
  checkpointed,  // spans that run once more before their backward
  retained,      // calls whose backward is run again
  anything
};
inline constexpr int schedule_shapes = 6;
// Of at most 6 ops and 40 calls; the same for the same seed.
grad_schedule random_schedule(schedule_shape shape, std::uint64_t seed);
// Of a shape that the seed chooses.
grad_schedule random_schedule(std::uint64_t seed);

// The shortest part of a failing schedule, with the plainest calls and options, that was found to
// fail too; of the same seed. Asks `fails` at most `most_tries` times.
grad_schedule shortened(grad_schedule failing,
                        const std::function<bool(const grad_schedule&)>& fails,
                        int most_tries = 2000);

}  // namespace reprise::scenarios
