#include "reprise/train/certificate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/kernel/registry.hpp"

namespace reprise {

namespace {

std::uint64_t word_of(const void* address) {
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(address));
}

void certify_device(device_ref on, certificate& into) {
  const kernel_table* const kernels = on.kernels();
  into.facts.push_back({fact_kind::device, 0, 0, 0, word_of(&on.state())});
  into.facts.push_back(
      {fact_kind::kernels, 0, 0, 0, kernels == nullptr ? 0 : kernels->fingerprint()});
}

void certify_uses(const signature& declared, std::uint16_t layer, certificate& into) {
  const std::size_t count = declared.uses().size();
  into.facts.push_back({fact_kind::layer, layer, 0, 0, count});
  for (std::size_t i = 0; i < count; ++i) {
    const parameter& p = *declared.uses()[i].weight;
    const auto put = [&](fact_kind kind, std::uint64_t word, int axis = 0) {
      into.facts.push_back(
          {kind, layer, static_cast<std::uint16_t>(i), static_cast<std::uint16_t>(axis), word});
    };
    put(fact_kind::address, word_of(p.value.data));
    put(fact_kind::element_type, static_cast<std::uint64_t>(p.value.type));
    put(fact_kind::rank, static_cast<std::uint64_t>(p.value.shape.rank));
    for (int axis = 0; axis < p.value.shape.rank; ++axis) {
      put(fact_kind::extent, static_cast<std::uint64_t>(p.value.shape[axis]), axis);
      put(fact_kind::stride, static_cast<std::uint64_t>(p.value.strides[axis]), axis);
    }
    put(fact_kind::gradient, word_of(p.grad.data));
  }
}

// A word of this kind, as people write it.
std::string text_of(fact_kind kind, std::uint64_t word) {
  switch (kind) {
    case fact_kind::address:
    case fact_kind::gradient: return fmt::format("0x{:x}", word);
    case fact_kind::element_type: return std::string{name_of(static_cast<dtype>(word))};
    default: return fmt::format("{}", word);
  }
}

std::string_view says(fact_kind kind) {
  switch (kind) {
    case fact_kind::address: return "lies at";
    case fact_kind::element_type: return "is of type";
    case fact_kind::rank: return "has the rank";
    case fact_kind::extent: return "has the extent";
    case fact_kind::stride: return "has the stride";
    case fact_kind::gradient: return "has its gradient at";
    default: return "is";
  }
}

std::string difference(const certificate& of, const certified_fact& then,
                       const certified_fact& now) {
  switch (then.kind) {
    case fact_kind::device: return "it is called on another device";
    case fact_kind::kernels: return "its ops resolve to other kernels";
    default: break;
  }
  const signature& declared = *of.layers[then.layer];
  const std::string layer = fmt::format("layer {} '{}'", then.layer, declared.name());
  if (then.kind == fact_kind::callable) {
    return fmt::format("term {} '{}' is another callable", then.layer, declared.name());
  }
  if (then.kind == fact_kind::layer || then.kind != now.kind) {
    return layer + " has other parameters";
  }
  const std::string& name = declared.uses()[then.use].name;
  return fmt::format("parameter '{}' of {} {} {} and was recorded with {}", name, layer,
                     says(then.kind), text_of(then.kind, now.word), text_of(then.kind, then.word));
}

}  // namespace

void certificate::clear() {
  kinds.clear();
  layers.clear();
  facts.clear();
}

void certify(const nn::sequence& module, device_ref on, certificate& into) {
  certify_device(on, into);
  for (std::size_t i = 0; i < module.size(); ++i) {
    into.kinds.push_back(module.kind_at(i));
    const auto layer = static_cast<std::uint16_t>(into.layers.size());
    into.layers.push_back(&module.layer_at(i));
    certify_uses(module.layer_at(i), layer, into);
  }
}

void certify(std::span<const loss_term> terms, device_ref on, certificate& into) {
  certify_device(on, into);
  for (const loss_term& term : terms) {
    into.kinds.push_back(term.op.kind);
    const signature& declared = term.op.op.declared;
    const auto at = static_cast<std::uint16_t>(into.layers.size());
    into.layers.push_back(&declared);
    into.facts.push_back(
        {fact_kind::callable, at, 0, 0, static_cast<std::uint64_t>(declared.id())});
    certify_uses(declared, at, into);
  }
}

std::string drift(const certificate& then, const certificate& now) {
  if (then.kinds.size() != now.kinds.size()) {
    return fmt::format("it has {} layers and was recorded with {}", now.kinds.size(),
                       then.kinds.size());
  }
  for (std::size_t i = 0; i < then.kinds.size(); ++i) {
    if (then.kinds[i] == now.kinds[i]) continue;
    return fmt::format("layer {} '{}' is of another kind", i, then.layers[i]->name());
  }
  const std::size_t both = std::min(then.facts.size(), now.facts.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (then.facts[i] != now.facts[i]) return difference(then, then.facts[i], now.facts[i]);
  }
  return then.facts.size() == now.facts.size() ? "" : "it has other parameters";
}

}  // namespace reprise
