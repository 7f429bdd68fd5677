// A loss as a part of a training step knows it: which inputs are predictions and targets, and which
// output is the loss, a single f32.
#pragma once

#include <memory>
#include <typeindex>
#include <utility>

#include "reprise/grad/graphed_op.hpp"
#include "reprise/nn/binary_cross_entropy.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "reprise/nn/squared_error.hpp"

namespace reprise {

struct loss_op {
  // Of any differentiable op with these three; the handles are its own.
  template <differentiable Op, element P, element T>
  loss_op(Op of, const input<P>& predictions, const input<T>& targets, const output<float>& loss)
      : kind{typeid(Op)},
        predictions_slot{predictions.slot()},
        targets_slot{targets.slot()},
        loss_slot{loss.slot()},
        op{erase(std::make_shared<const Op>(std::move(of)))} {}

  std::type_index kind;
  int predictions_slot;
  int targets_slot;
  int loss_slot;
  erased_op op;

  const declared_input& predictions() const { return input_at(predictions_slot); }
  const declared_input& targets() const { return input_at(targets_slot); }

 private:
  const declared_input& input_at(int slot) const {
    return op.declared.inputs()[static_cast<std::size_t>(slot)];
  }
};

inline loss_op loss_of(nn::squared_error op) {
  return {op, op.x, op.target, op.loss};
}
inline loss_op loss_of(nn::softmax_cross_entropy op) {
  return {op, op.logits, op.targets, op.loss};
}
inline loss_op loss_of(nn::binary_cross_entropy op) {
  return {op, op.logits, op.targets, op.loss};
}

}  // namespace reprise
