// A loss as a part of a training step knows it (graphed_loss.hpp): a differentiable op, with which
// of its inputs are predictions and targets, and which output is the loss.
#pragma once

#include <memory>
#include <string>
#include <typeindex>
#include <utility>

#include "reprise/grad/graphed_op.hpp"
#include "reprise/nn/binary_cross_entropy.hpp"
#include "reprise/nn/softmax_cross_entropy.hpp"
#include "reprise/nn/squared_error.hpp"

namespace reprise {

class loss_workspace;

struct loss_op {
  // Of any differentiable op with these three; the handles are its own. What it refers to outlives
  // it.
  template <differentiable Op, element T>
  loss_op(Op of, const input<float>& predictions, const input<T>& targets,
          const output<float>& loss)
      : kind{typeid(Op)},
        predictions_slot{predictions.slot()},
        targets_slot{targets.slot()},
        loss_slot{loss.slot()},
        op{erase(std::make_shared<const Op>(std::move(of)))},
        handle_{std::make_shared<const input<T>>(targets)} {}

  std::type_index kind;
  int predictions_slot;
  int targets_slot;
  int loss_slot;  // of a single element
  erased_op op;

  const declared_input& predictions() const { return input_at(predictions_slot); }
  const declared_input& targets() const { return input_at(targets_slot); }
  // The op's own handle of its targets, to bind them with: tensors, views, or host memory. Throws
  // usage_error where they are of another type.
  template <element T>
  const input<T>& targets_as() const {
    if (targets().type != dtype_of<T>) refuse_type(dtype_of<T>);
    return *static_cast<const input<T>*>(handle_.get());
  }

 private:
  [[noreturn]] void refuse_type(dtype asked) const;
  const declared_input& input_at(int slot) const {
    return op.declared.inputs()[static_cast<std::size_t>(slot)];
  }

  std::shared_ptr<const void> handle_;  // of the targets
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

struct loss_term {
  std::string name;
  loss_op op;
  float weight = 1;
  // What its op keeps between calls and writes in them; null: nothing. It outlives the part.
  loss_workspace* workspace = nullptr;
};

}  // namespace reprise
