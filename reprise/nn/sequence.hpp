// sequence: layers one behind the other as one op, so that all their forwards are one recording and
// all their backwards another.
//
//   sequence trunk{"trunk"};
//   trunk.add(linear{set.at("in.weight"), set.at("in.bias")}).add(gelu{});
//   graphed_op net{trunk, budget};
//
//   x [m, k], y [m, n]: the first layer's x, the last one's y
//
// What each layer reads and saves lies in the memory of the op's call; nothing is copied between
// layers. The bits are those of the same layers in a network (network.hpp), where each has
// recordings of its own. Layers that draw draw from one counter. It is a layer itself, and a value:
// add all layers first, then copy it. What layers refer to outlives it.
//
// Each layer's y is marked as point {layer's name, its place}.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <typeindex>
#include <utility>
#include <vector>

#include "reprise/nn/layer.hpp"

namespace reprise::nn {

class sequence {
  signature declared_;

 public:
  // A layer whose outputs depend on state that it writes is refused when it is added.
  static constexpr bool outputs_ignore_state = true;

  explicit sequence(std::string name);

  // Appends a layer. Throws usage_error for one that has other inputs that must be bound, whose
  // state cannot be left out when it is run again, or that draws from another counter.
  template <layer L>
  sequence& add(L op) {
    part made{.kind = typeid(L), .is_only_in_training = is_only_in_training<L>()};
    if constexpr (changes_in_inference<L>) {
      made.in_inference = std::make_shared<const part>(part_of(op.in_inference()));
    }
    made.op = erase(std::make_shared<const L>(op));
    made.x = op.x.slot();
    made.y = op.y.slot();
    append(std::move(made));
    return *this;
  }

  const input<float> x;
  const output<float> y;

  // What it is in inference: without the layers that are only in training.
  sequence in_inference() const;

  std::size_t size() const { return parts_.size(); }
  const signature& layer_at(std::size_t i) const { return parts_[i].op.declared; }
  // Which type of layer it is.
  std::type_index kind_at(std::size_t i) const { return parts_[i].kind; }

  const signature& describe() const { return declared_; }
  // Throws usage_error when there is no layer.
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  struct part {
    std::type_index kind;
    bool is_only_in_training = false;
    erased_op op{signature{""}, {}, {}, false};
    int x = 0;
    int y = 0;
    std::shared_ptr<const part> in_inference{};  // null: the same
  };
  template <layer L>
  static part part_of(L op) {
    part made{.kind = typeid(L)};
    made.x = op.x.slot();
    made.y = op.y.slot();
    made.op = erase(std::make_shared<const L>(std::move(op)));
    return made;
  }
  void append(part made);
  std::size_t first_that_trains() const;

  std::vector<part> parts_;
};

}  // namespace reprise::nn
