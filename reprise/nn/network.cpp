#include "reprise/nn/network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/grad/checkpoint.hpp"

namespace reprise::nn {

// What one forward keeps for its backward, and how far that has come.
struct network_pass {
  struct stamp {
    std::shared_ptr<const version_counter::count> count;  // null: not looked at
    std::uint64_t value = 0;

    bool moved() const { return count != nullptr && count->load() != value; }
  };
  // A stretch of layers. Of a checkpointed one the tickets are those of its recompute, from that
  // until its backward has passed.
  struct part {
    std::vector<forward_ticket> tickets;  // by layer
    std::optional<checkpoint> span;
    std::optional<operand> from;  // what the span read, of this version
    stamp read;
    std::vector<stamp> used;  // of the span: what each of its layers uses, one after another
  };
  std::vector<part> parts;  // empty: the backward has passed
  std::size_t layers = 0;

  std::size_t left = 0;                  // the backward of layers from here on has passed
  tensor<float> gradient;                // of what layer left - 1 wrote
  std::vector<const parameter*> formed;  // that layers from there on have given a gradient
};

namespace {

using stamp = network_pass::stamp;

// What was bound to another layer's input, bound to this one's.
operand bound_to(const input<float>& x, operand from) {
  from.bound.of = x.of();
  from.bound.slot = x.slot();
  return from;
}

stamp stamp_of(const std::shared_ptr<const version_counter::count>& count) {
  return {count, count ? count->load() : 0};
}

}  // namespace

void network::append(graphed_layer made) {
  layers_.push_back(std::move(made));
  if (begins_) stretches_.push_back({layers_.size() - 1, 0, label_});
  begins_ = false;
  stretches_.back().last = layers_.size();
}

void network::begin_checkpoint(std::string label) {
  if (!label_.empty() || label.empty()) {
    throw usage_error{
        fmt::format("network: checkpointed span '{}' has no label, or begins inside "
                    "of another; name each, and end one before the next",
                    label)};
  }
  label_ = std::move(label);
  begins_ = true;
}

void network::end_checkpoint() {
  if (label_.empty()) {
    throw usage_error{"network: no checkpointed span has begun here; call begin_checkpoint first"};
  }
  label_.clear();
  begins_ = true;
}

const input<float>& network::x() const {
  if (layers_.empty()) throw usage_error{"network: there is no layer yet; add one"};
  return layers_.front().x;
}

std::vector<philox_counter*> network::counters_of(const stretch& over) const {
  std::vector<philox_counter*> counters;
  for (std::size_t i = over.first; i < over.last; ++i) {
    philox_counter* const from = layers_[i].draws_from;
    if (from != nullptr && std::ranges::find(counters, from) == counters.end()) {
      counters.push_back(from);
    }
  }
  return counters;
}

tensor<float> network::run(site at, const stretch& over, const operand& x,
                           std::vector<forward_ticket>& tickets) {
  tensor<float> y;
  for (std::size_t i = over.first; i < over.last; ++i) {
    graphed_layer& each = layers_[i];
    const operand from = i == over.first ? bound_to(each.x, x) : operand{each.x, y};
    const forward_result made = each.op.forward(at, {from});
    tickets.push_back(made.ticket);
    y = made[each.y];
  }
  return y;
}

network_call network::forward(site at, const operand& x) {
  static_cast<void>(this->x());  // refuses a network without layers
  network_call call{{}, std::make_shared<network_pass>()};
  network_pass& pass = *call.pass;
  pass.layers = pass.left = layers_.size();
  operand from = x;
  for (const stretch& over : stretches_) {
    network_pass::part& part = pass.parts.emplace_back();
    if (over.checkpointed.empty()) {
      call.y = run(at, over, from, part.tickets);
    } else {
      part.span.emplace(over.checkpointed, std::span<philox_counter* const>{counters_of(over)});
      part.from = from;
      part.read = stamp_of(from.version);
      for (std::size_t i = over.first; i < over.last; ++i) {
        for (const declared_use& use : layers_[i].uses) {
          part.used.push_back(stamp_of(use.weight->version.shared()));
        }
      }
      call.y = part.span->forward([&] {
        std::vector<forward_ticket> dropped;
        return run(at, over, from, dropped);
      });
    }
    from = operand{layers_[over.last - 1].x, call.y};
  }
  return call;
}

tensor<float> network::infer(site at, const operand& x) {
  tensor<float> y;
  for (graphed_layer& each : layers_) {
    if (each.only_in_training && !REPRISE_MUTANT(inference_drops_out)) continue;
    const auto infer = [&](auto& layer) {
      const operand from = y ? operand{layer.x, y} : bound_to(layer.x, x);
      y = layer.op.infer(at, {from})[layer.y];
    };
    if (each.inference && !REPRISE_MUTANT(inference_has_the_statistics_of_its_batch)) {
      infer(*each.inference);
    } else {
      infer(each);
    }
  }
  if (!y) {
    throw usage_error{"network: there is no layer that inference runs; add one"};
  }
  return y;
}

std::size_t network::first_needed(bool wants_x) const {
  if (wants_x || REPRISE_MUTANT(backward_goes_through_frozen_layers)) return 0;
  const auto first = std::ranges::find_if(layers_, [](const graphed_layer& each) {
    return std::ranges::any_of(each.uses,
                               [](const declared_use& use) { return use.trained != nullptr; });
  });
  return static_cast<std::size_t>(first - layers_.begin());
}

network_pass& network::owed_by(const network_call& call, const tensor<float>& dy) const {
  if (!call.pass || layers_.empty()) {
    throw usage_error{"network: this is no forward of this network as it is now; run one"};
  }
  network_pass& pass = *call.pass;
  if (pass.parts.empty()) {
    throw usage_error{"network: this forward has had its backward; run another forward"};
  }
  if (pass.parts.size() != stretches_.size() || pass.layers != layers_.size()) {
    throw usage_error{"network: this is no forward of this network as it is now; run one"};
  }
  if (!dy) throw usage_error{"network: the backward has no gradient of y; give one"};
  for (std::size_t i = pass.left; i < layers_.size(); ++i) {
    for (const declared_use& use : layers_[i].uses) {
      if (std::ranges::find(pass.formed, use.weight) == pass.formed.end()) continue;
      if (use.weight->has_grad) continue;
      throw usage_error{fmt::format(
          "network: layer '{}': the gradient of '{}' was dropped before the backward that formed "
          "it came to its end; run the forward again",
          layers_[i].op.name(), use.name)};
    }
  }
  return pass;
}

// Its recompute takes versions as they are then, so they are compared here.
void network::require_unchanged(const stretch& over, const network_pass& pass,
                                std::size_t p) const {
  const network_pass::part& part = pass.parts[p];
  const auto refuse = [](const graphed& op, std::string_view kind, std::string_view which) {
    throw stale_error{fmt::format(
        "op '{}': {} '{}' was changed in place since the forward that saved it; run the backward "
        "before the change, or the forward again",
        op.name(), kind, which)};
  };
  auto used = part.used.begin();
  for (std::size_t i = over.first; i < over.last; ++i) {
    for (const declared_use& use : layers_[i].uses) {
      if (used++->moved()) refuse(layers_[i].op, "parameter", use.name);
    }
  }
  if (part.read.moved()) refuse(layers_[over.first].op, "input", layers_[over.first].x_name);
}

void network::recompute(site at, const stretch& over, network_pass& pass, std::size_t p) {
  if (!REPRISE_MUTANT(span_is_recomputed_of_new_weights)) require_unchanged(over, pass, p);
  network_pass::part& part = pass.parts[p];
  operand from = *part.from;
  if (from.held) from.bound.to.data = from.held->now().data;
  std::vector<forward_ticket> tickets;
  part.span->recompute([&] { run(at, over, from, tickets); });
  part.tickets = std::move(tickets);
}

tensor<float> network::backward(site at, const network_call& call, const tensor<float>& dy,
                                bool wants_x) {
  const bool keeps = REPRISE_MUTANT(network_backward_keeps_its_tickets);
  network_pass& pass = owed_by(call, dy);
  const std::size_t first = first_needed(wants_x);
  if (pass.left == layers_.size() || REPRISE_MUTANT(failed_network_backward_begins_again)) {
    pass.left = layers_.size();
    pass.gradient = dy;
  }
  for (std::size_t p = stretches_.size(); p-- > 0;) {
    const stretch& over = stretches_[p];
    if (over.last <= first) break;
    if (over.first >= pass.left) continue;  // passed in a call that threw
    network_pass::part& part = pass.parts[p];
    if (part.span && part.tickets.empty()) recompute(at, over, pass, p);
    while (pass.left > std::max(first, over.first)) {
      const std::size_t i = pass.left - 1;
      graphed_layer& each = layers_[i];
      const bool formed = i > first || wants_x;
      const wanted what = formed ? wanted::only(each.x) : wanted::parameters_only();
      const grad_result result = each.op.backward(at, part.tickets[i - over.first],
                                                  {gradient_of(each.y, pass.gradient)}, what);
      pass.gradient = formed ? result[each.x] : tensor<float>{};
      for (const declared_use& use : each.uses) {
        if (use.weight->has_grad) pass.formed.push_back(use.weight);
      }
      pass.left = i;
    }
    if (!keeps) part.tickets.clear();
  }
  const tensor<float> dx = wants_x ? pass.gradient : tensor<float>{};
  if (!keeps) pass = {};  // layers that ran no backward owe none any more
  return dx;
}

grad_counts network::counts() const {
  grad_counts all;
  for (const graphed_layer& each : layers_) {
    all += each.op.counts();
    if (each.inference) all += each.inference->op.counts();
  }
  return all;
}

}  // namespace reprise::nn
