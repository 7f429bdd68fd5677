// Six tiny differentiable ops, each about one thing that is hard to replay: a weight that training
// moves, random numbers, declared state, a backward that spoils what was saved, an input that may
// be left out or is read where it lies, a state that the call returns.
//
// All take rows of `row` floats. Their forwards use scratch that spoils whatever shares memory with
// it (kernel `stow`). What they compute is written a second time in grad_plain.hpp. An op is used
// by one thread at a time, as the graphed_op that holds it is.
#pragma once

#include <cstdint>
#include <string>

#include "reprise/device/memory.hpp"
#include "reprise/grad/graphed_op.hpp"

namespace reprise::scenarios {

inline constexpr std::int64_t row = 4;

// What `scaled` multiplies by in its forward, and its cotangent in its backward: another number
// under each precision, as a model's results are others then.
float magnification(const precision& in_force);

// y = w (magnification x), for each row; trains w [row].
class scaled {
 public:
  // The weight outlives the op.
  scaled(std::string name, parameter& w);
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;
  parameter* w_;

 public:
  const input<float> x = declared_.in<float>("x", {any, row});
  const output<float> y = declared_.out<float>("y");
};

// y = x m v: m is 2 or 0, v is uniform on [0, 1), both drawn; the backward draws them again.
class noisy {
 public:
  // The counter outlives the op. Ops of one `work` stand for one another.
  noisy(std::string name, philox_counter& counter, const std::string& work = {});
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;

 public:
  const input<float> x = declared_.in<float>("x", {any, row});
  const output<float> y = declared_.out<float>("y");
};

// y = x x; counts its forwards in `steps` [1], and keeps `running` [row], half of it plus the first
// row of x.
class counted {
 public:
  static constexpr bool outputs_ignore_state = true;

  // Both outlive the op.
  counted(std::string name, const buffer<std::int32_t>& steps, const buffer<float>& running);
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;
  view<std::int32_t> steps_;
  view<float> running_;

 public:
  const input<float> x = declared_.in<float>("x", {any, row});
  const output<float> y = declared_.out<float>("y");
};

// y = x x. Saves 4 x, which its backward halves twice in place: another run on the same memory
// would find a quarter of it.
class rewinding {
 public:
  explicit rewinding(std::string name, const std::string& work = {});
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;

 public:
  const input<float> x = declared_.in<float>("x", {any, row});
  const output<float> y = declared_.out<float>("y");
};

// y = a b, or y = 3 a where b is left out; a is read where it lies.
class joined {
 public:
  explicit joined(std::string name, const std::string& work = {});
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;

 public:
  const input<float> a = declared_.in<float>("a", {any, row}, input_mode::direct);
  const input<float> b = declared_.optional_in<float>("b", {any, row});
  const output<float> y = declared_.out<float>("y");
};

// y = 3 x, and the state `memory` = x x, which has a cotangent of its own, or none.
class remembering {
 public:
  explicit remembering(std::string name, const std::string& work = {});
  const signature& describe() const { return declared_; }
  void forward(forward_scope& run) const;
  void backward(backward_scope& run) const;

 private:
  signature declared_;

 public:
  const input<float> x = declared_.in<float>("x", {any, row});
  const output<float> y = declared_.out<float>("y");
  const output<float> memory = declared_.returned_state<float>("memory");
};

}  // namespace reprise::scenarios
