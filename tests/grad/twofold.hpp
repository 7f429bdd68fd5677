// A seventh tiny op, beside those of scenarios/grad_ops.hpp: one that trains two weights, so that a
// backward can fail between their gradients. Used by one thread at a time.
#pragma once

#include <string>

#include "reprise/grad/graphed_op.hpp"
#include "scenarios/grad_ops.hpp"

namespace reprise::test {

using scenarios::row;

// y = x w + x x v; trains both.
class twofold {
 public:
  twofold(std::string name, parameter& w, parameter& v);
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;
  parameter* w_;
  parameter* v_;

 public:
  const input<float> x = declared_.in<float>("x", {any, row});
  const output<float> y = declared_.out<float>("y");
};

}  // namespace reprise::test
