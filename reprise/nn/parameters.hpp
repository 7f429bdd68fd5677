// The parameters of a network: named values with their gradients, in two stretches of one block of
// device memory, so that one kernel or one copy can take all of them.
//
// Made before the layers, which refer to them; their addresses never change. Between neighbours lie
// zeros, which an optimizer that runs over them leaves zeros. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/signature.hpp"

namespace reprise::nn {

struct constant {
  float value = 0;
};
// On [-bound, bound).
struct uniform {
  float bound = 1;
};
using initial = std::variant<constant, uniform>;

// For a layer that sums over `terms` inputs: a bound of 1 / sqrt(terms) (the usual heuristic, as in
// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// 2010, equation 1). Throws usage_error when `terms` is under 1.
uniform uniform_over(std::int64_t terms);

struct parameter_spec {
  std::string name;
  dims shape;
  initial begins;
};
using parameter_specs = std::vector<parameter_spec>;

// NAME.weight [n, k] and NAME.bias [n] of a linear layer from k to n, uniform over k.
parameter_specs linear_parameters(const std::string& name, std::int64_t n, std::int64_t k);
// NAME.gain [width], ones, and NAME.bias [width], zeros.
parameter_specs norm_parameters(const std::string& name, std::int64_t width);
// Lists in one.
parameter_specs joined(std::initializer_list<parameter_specs> lists);

// A parameter's values outside of the device.
struct stored_parameter {
  std::string name;
  dims shape;
  std::vector<float> values;
};

class parameter_set {
 public:
  // Uploads the initial values in the order of `stream`. A value is a function of the seed, its
  // parameter's place in the list and its own place in the parameter: element i of parameter p is
  // word i % 4 of Philox block (i / 4, 2^63 + p) of key `seed`, as a number of 24 bits. Throws
  // usage_error for a name that is there twice, and for a shape with an open extent.
  parameter_set(pool& into, stream_ref stream, parameter_specs specs, std::uint64_t seed);
  parameter_set(const parameter_set&) = delete;
  parameter_set& operator=(const parameter_set&) = delete;

  std::size_t size() const { return specs_.size(); }
  parameter& operator[](std::size_t i) { return parameters_[i]; }
  const parameter& operator[](std::size_t i) const { return parameters_[i]; }
  const std::string& name(std::size_t i) const { return specs_[i].name; }
  // Null when there is none of that name.
  parameter* find(std::string_view name) noexcept;
  // Throws usage_error when there is none of that name.
  parameter& at(std::string_view name);

  // Gradients count as empty: the next backward writes them. Touches no memory.
  void drop_gradients() noexcept;

  // Elements [begin(i), end(i)) of these are those of parameter i; the next begins a little behind
  // that. An optimizer's own values can lie in the same order.
  view<float> values() const { return memory_.all().subview(0, elements()); }
  view<float> gradients() const { return memory_.all().subview(elements(), elements()); }
  std::size_t elements() const { return begins_.back(); }
  std::size_t begin(std::size_t i) const { return begins_[i]; }
  std::size_t end(std::size_t i) const { return begins_[i] + specs_[i].shape.count(); }

  // All values, in the order of the list; waits for the stream.
  std::vector<stored_parameter> to_host(stream_ref stream) const;
  // Puts values back, in stream order, and moves their versions. Throws usage_error, and changes
  // nothing, when one is missing, unknown, there twice, or of another shape.
  void from_host(stream_ref stream, std::span<const stored_parameter> stored);

 private:
  std::size_t place_of(std::string_view name) const noexcept;  // size(): there is none
  void require_fit(std::span<const stored_parameter> stored) const;

  parameter_specs specs_;
  std::vector<std::size_t> begins_;  // and the end of the last
  buffer<float> memory_;
  std::vector<parameter> parameters_;
};

}  // namespace reprise::nn
