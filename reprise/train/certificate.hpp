// What the recordings of a part rest on, as words that are read anew before each call: a part that
// has recorded compares them, and is retired where one has changed.
//
// Of a module: the kinds of its layers in their order, where each parameter and its gradient lie,
// with dtype, shape and strides, and the kernels of the device (what its ops resolve to). Of heads
// the same of each group's module. Of a loss: the identity of its terms, with what they use. What
// is right in spite of a change (weights that training updates in place, a batch of another size)
// is no part of it. Plain functions; reading allocates nothing once a certificate has its size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <typeindex>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/nn/sequence.hpp"
#include "reprise/train/loss_op.hpp"

namespace reprise {

enum class fact_kind : std::uint8_t {
  device,
  kernels,
  layer,     // how many parameters it has
  callable,  // the signature of a loss term, which no two share
  address,
  element_type,
  rank,
  extent,
  stride,
  gradient
};

struct certified_fact {
  fact_kind kind{};
  std::uint16_t layer = 0;  // or term
  std::uint16_t use = 0;    // which of its parameters
  std::uint16_t axis = 0;
  std::uint64_t word = 0;

  bool operator==(const certified_fact&) const = default;
};

struct certificate {
  std::vector<std::type_index> kinds;    // of the layers or terms, in their order
  std::vector<const signature*> layers;  // what they declare, for texts
  std::vector<certified_fact> facts;

  // Nothing is certified; memory stays.
  void clear();
};

// Appends what a module rests on, on this device.
void certify(const nn::sequence& module, device_ref on, certificate& into);
// The same of a loss.
void certify(std::span<const loss_term> terms, device_ref on, certificate& into);

// What has changed first, in words: "parameter 'weight' of layer 0 'linear' lies at 0x7f… and was
// recorded at 0x7e…"; empty where nothing has. What `then` declares is alive.
std::string drift(const certificate& then, const certificate& now);

}  // namespace reprise
