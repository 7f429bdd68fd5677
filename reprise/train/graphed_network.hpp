// graphed_network: a module's forward as one recording and its backward as another.
//
//   graphed_network trunk{module, budget, {.on = true}};
//   training_run run{{&trunk}};
//   run.start(s);
//   const part_call call = trunk.forward(s, operand{trunk.x(), images});
//   const tensor<float> dx = trunk.backward(s, call, dy);
//   run.end();
//
// Gradients of parameters are written, or added to what is there. It may hold parts of the same
// run, which are cleared with it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reprise/nn/sequence.hpp"
#include "reprise/train/certificate.hpp"
#include "reprise/train/part.hpp"
#include "reprise/train/part_life.hpp"
#include "reprise/train/run_part.hpp"

namespace reprise {

class graphed_network {
 public:
  // The budget outlives it, and so does what the module refers to.
  graphed_network(nn::sequence module, byte_budget& budget, part_options options = {});
  ~graphed_network();
  graphed_network(const graphed_network&) = delete;
  graphed_network& operator=(const graphed_network&) = delete;

  const input<float>& x() const;

  // In training. Throws what graphed::forward throws when it runs eagerly.
  part_call forward(site at, const operand& x);
  // Empty unless the gradient of x is wanted. Throws what graphed::backward throws.
  tensor<float> backward(site at, const part_call& call, const tensor<float>& dy,
                         bool wants_x = false);
  // As the module is in inference; no frame is touched.
  tensor<float> infer(site at, const operand& x);

  // A part inside of it: cleared before it, whatever fails.
  void hold(run_part child);

  const std::string& name() const;
  part_state state() const;
  // Why it is refused or retired; empty otherwise.
  const std::string& reason() const;
  part_counts counts() const;
