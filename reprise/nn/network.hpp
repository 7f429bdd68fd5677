// A network: a sequence of graphed layers, each of which reads what the one before it wrote.
//
//   network net{budget, {.conflict = slots{3}}};
//   net.add(linear{set.at("in.weight"), set.at("in.bias")});
//   net.add(gelu{});
//   const network_call call = net.forward(s, net.x().from_host(images));
//   … the loss of call.y and its gradient dy …
//   net.backward(s, call, dy);
//
// Layers are as layer.hpp says. Spans of them can be checkpointed.
//
// Layers are added by one thread; calls may come from any, as those of graphed ops may. Where
// layers draw or spans are checkpointed there is one caller at a time: a recompute sets their
// counters back while it runs. So there is for the backward of one forward.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reprise/nn/layer.hpp"

namespace reprise::nn {

struct network_pass;  // network.cpp

// One forward of a network. Copies are the same forward; when the last goes, nothing is owed for
// it.
struct network_call {
  tensor<float> y;                     // of the last layer
  std::shared_ptr<network_pass> pass;  // what its backward needs
};

class network {
 public:
  // Layers have these options unless they are added with others. The budget outlives the network.
  explicit network(byte_budget& budget, graphed_options options = {})
      : budget_{&budget}, options_{options} {}
  network(network&&) noexcept = default;
  network& operator=(network&&) noexcept = default;

  // Appends a layer. What it refers to outlives the network.
  template <layer L>
  void add(L op) {
    add(std::move(op), options_);
  }
  template <layer L>
  void add(L op, const graphed_options& options) {
    const input<float> x = op.x;
    const output<float> y = op.y;
    const signature& declared = op.describe();
    std::string x_name = declared.inputs()[static_cast<std::size_t>(x.slot())].name;
    std::vector<declared_use> uses{declared.uses().begin(), declared.uses().end()};
    philox_counter* const draws_from = declared.random();
    std::optional<inferring> inference;
    if constexpr (changes_in_inference<L>) {
      auto other = op.in_inference();
      const input<float> from = other.x;
      const output<float> to = other.y;
      inference.emplace(inferring{graphed_op{std::move(other), *budget_, options}, from, to});
    }
    append({graphed_op<L>{std::move(op), *budget_, options}, x, y, std::move(x_name),
            std::move(uses), draws_from, is_only_in_training<L>(), std::move(inference)});
  }
  // From here on layers belong to a checkpointed span of that label, until end_checkpoint. Throws
  // usage_error inside of another, and where one ends that did not begin.
  void begin_checkpoint(std::string label);
  void end_checkpoint();

  std::size_t size() const { return layers_.size(); }
  graphed& at(std::size_t i) { return layers_[i].op; }
  // Of the first layer. Throws usage_error when there is none.
  const input<float>& x() const;

  // All layers in order, in stream order. What is bound to a first span that is checkpointed is
  // read once more by the backward, host memory too. Throws what graphed::forward throws.
  network_call forward(site at, const operand& x);
  // As inference has its layers, without what only training has, and without a backward: no frame
  // is touched, and what layers keep for inference does not move.
  tensor<float> infer(site at, const operand& x);
  // The layers in reverse: gradients of parameters are written, or added to what is there, and that
  // of x is returned where it is wanted (else empty). Layers in front of the first that trains
  // anything then run no backward.
  //
  // A forward has one backward; with it goes all that was kept for it. One that throws is gone on
  // with when it is called again, from the layer that failed and with the gradient that came there,
  // whatever dy is by then: each gradient is added once.
  //
  // Throws usage_error where dy is empty, for a second backward of a forward, for a forward of
  // other layers, and where a gradient that was formed before a failure has been dropped since;
  // stale_error when a parameter or an input was changed in place since the forward, in a
  // checkpointed span too; and what graphed::backward throws.
  tensor<float> backward(site at, const network_call& call, const tensor<float>& dy,
                         bool wants_x = false);

  // Of all layers, added up.
  grad_counts counts() const;

 private:
  // What runs in the place of a layer in inference.
  struct inferring {
    graphed op;
    input<float> x;
    output<float> y;
  };
  struct graphed_layer {
    graphed op;
    input<float> x;
    output<float> y;
    std::string x_name;
    std::vector<declared_use> uses;
    philox_counter* draws_from;  // null: it draws nothing
    bool only_in_training;
    std::optional<inferring> inference;  // none: itself
  };
  struct stretch {
    std::size_t first;
    std::size_t last;          // the one behind its last
    std::string checkpointed;  // its label; empty: it is not
  };

  void append(graphed_layer made);
  std::vector<philox_counter*> counters_of(const stretch& over) const;
  // Runs the layers of a stretch and appends their tickets.
  tensor<float> run(site at, const stretch& over, const operand& x,
                    std::vector<forward_ticket>& tickets);
  std::size_t first_needed(bool wants_x) const;
  network_pass& owed_by(const network_call& call, const tensor<float>& dy) const;
  // Of part p of the pass, a checkpointed span: its layers once more, for their tickets.
  void recompute(site at, const stretch& over, network_pass& pass, std::size_t p);
  void require_unchanged(const stretch& over, const network_pass& pass, std::size_t p) const;

  byte_budget* budget_;
  graphed_options options_;
  std::vector<graphed_layer> layers_;
  std::vector<stretch> stretches_;
  std::string label_;   // of the checkpointed span that layers belong to now; empty: of none
  bool begins_ = true;  // the next layer begins a stretch
};

}  // namespace reprise::nn
