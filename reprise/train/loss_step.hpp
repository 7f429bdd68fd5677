// The step that a loss is: each term's forward, and, where gradients are formed, its backward, in
// one body. graphed_loss says whether it is recorded. For this room's .cpp files.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "reprise/replay/step.hpp"
#include "reprise/train/loss_op.hpp"

namespace reprise {

class inline_pass;

class loss_step {
 public:
  // `terms` outlive it. What they keep between calls lies where it lies now.
  loss_step(const std::string& name, std::span<const loss_term> terms, bool forms_gradients);
  loss_step(const loss_step&) = delete;
  loss_step& operator=(const loss_step&) = delete;

  const step& what() const { return *what_; }
  // The operands of a call, bound to the step. The terms without predictions are left out. Throws
  // usage_error unless there is a target for each prediction, bound to its own op's, and a term at
  // all.
  std::vector<binding> bind(site at, std::span<const tensor<float>> predictions,
                            std::span<const operand> targets, view<const float> scale) const;

  // Its outputs: [1], [1] each, and each of its predictions' shape; of a term that is left out [0].
  int total() const { return total_; }
  int loss_of(std::size_t term) const { return slots_[term].loss; }
  int gradient_of(std::size_t term) const { return slots_[term].gradient; }  // -1: forms none

 private:
  struct term_slots {
    int predictions;
    int targets;
    int loss;
    int gradient = -1;
  };

  void run(step_scope& run) const;
  void run_backward(step_scope& run, inline_pass& ops, std::size_t term,
                    view<const float> scale) const;
  bool is_given(const step_scope& run, std::size_t term) const;

  std::span<const loss_term> terms_;
  signature declared_;
  std::vector<term_slots> slots_;
  int scale_ = -1;
  int total_ = -1;
  std::unique_ptr<step> what_;
};

}  // namespace reprise
