// A graphed op with all that it is called with: called in pairs of a forward and its backward, and
// timed until the stream was synchronised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/grad/subject.hpp"
#include "bench/measure/spread.hpp"
#include "reprise/grad/graphed_op.hpp"

namespace reprise::bench {

// An op, and what each call is made with. What operands and parameters refer to outlives it.
struct op_to_call {
  std::string what;
  erased_op op;
  std::vector<operand> given;
  operand cotangent;
  std::vector<parameter*> trained;
};

// Microseconds of a forward alone, of its backward alone, and of both together.
struct pass_times {
  std::vector<double> forward;
  std::vector<double> backward;
  std::vector<double> both;
};

class called_op {
 public:
  // Replayed: under `hold`, gradients moved. Else it records nothing.
  called_op(stream_ref stream, const op_to_call& what, byte_budget& budget, bool is_replayed);

  // Each backward writes the gradients of parameters anew.
  void run();
  // The same for what a pair leaves: outputs, states, gradients, and those of parameters.
  std::uint64_t run_and_look();
  void time(pass_times& into);
  // Of a forward and its backward, with nothing waited for between them.
  double time_both();

  const graphed& op() const { return op_; }
  // Every pair so far was to be answered in this way, the first replayed one by a capture.
  op_counts counts() const;

 private:
  forward_result forward();
  grad_result backward(const forward_ticket& ticket);

  stream_ref stream_;
  op_to_call what_;
  graphed op_;
  bool is_replayed_;
  std::uint64_t pairs_ = 0;
};

}  // namespace reprise::bench
