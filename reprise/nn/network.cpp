#include "reprise/nn/network.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise::nn {

namespace {

// What was bound to another layer's input, bound to this one's.
operand bound_to(const input<float>& x, operand from) {
  from.bound.of = x.of();
  from.bound.slot = x.slot();
  return from;
}

void add_counts(grad_counts& a, const grad_counts& b) {
  a.forward_capture += b.forward_capture;
  a.forward_shared += b.forward_shared;
  a.forward_replay += b.forward_replay;
  a.backward_capture += b.backward_capture;
  a.backward_replay += b.backward_replay;
  a.stale_replay += b.stale_replay;
  a.stale_by_pool += b.stale_by_pool;
  a.inference += b.inference;
  a.stale_us += b.stale_us;
  for (std::size_t i = 0; i < eager_causes; ++i) {
    a.eager_forward[i] += b.eager_forward[i];
    a.eager_backward[i] += b.eager_backward[i];
  }
}

}  // namespace

bool network::trains_any(const signature& declared) {
  return std::ranges::any_of(declared.uses(),
                             [](const declared_use& use) { return use.trained != nullptr; });
}

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

std::shared_ptr<checkpoint> network::checkpoint_of(const stretch& span) const {
  std::vector<philox_counter*> counters;
  for (std::size_t i = span.first; i < span.last; ++i) {
    philox_counter* const from = layers_[i].draws_from;
    if (from != nullptr && std::ranges::find(counters, from) == counters.end()) {
      counters.push_back(from);
    }
  }
  if (counters.empty()) return std::make_shared<checkpoint>(span.checkpointed);
  if (counters.size() > 1) {
    throw usage_error{
        fmt::format("network: checkpointed span '{}' draws from {} counters; let its "
                    "layers draw from one",
                    span.checkpointed, counters.size())};
  }
  return std::make_shared<checkpoint>(span.checkpointed,
                                      std::initializer_list<philox_counter*>{counters.front()});
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
  network_call call;
  operand from = x;
  for (const stretch& over : stretches_) {
    network_call::part& part = call.parts.emplace_back();
    if (over.checkpointed.empty()) {
      call.y = run(at, over, from, part.tickets);
    } else {
      part.span = checkpoint_of(over);
      part.from = from;
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
    const operand from = y ? operand{each.x, y} : bound_to(each.x, x);
    y = each.op.infer(at, {from})[each.y];
  }
  if (!y) {
    throw usage_error{"network: there is no layer that inference runs; add one"};
  }
  return y;
}

std::size_t network::first_needed(bool wants_x) const {
  if (wants_x || REPRISE_MUTANT(backward_goes_through_frozen_layers)) return 0;
  const auto first = std::ranges::find(layers_, true, &graphed_layer::trains);
  return static_cast<std::size_t>(first - layers_.begin());
}

tensor<float> network::backward(site at, const network_call& call, const tensor<float>& dy,
                                bool wants_x) {
  if (call.parts.size() != stretches_.size() || layers_.empty()) {
    throw usage_error{"network: this is no forward of this network as it is now; run one"};
  }
  const std::size_t first = first_needed(wants_x);
  tensor<float> gradient = dy;
  for (std::size_t p = stretches_.size(); p-- > 0;) {
    const stretch& over = stretches_[p];
    if (over.last <= first) break;
    const network_call::part& part = call.parts[p];
    std::vector<forward_ticket> again;
    if (part.span) {
      part.span->recompute([&] { run(at, over, *part.from, again); });
    }
    const std::vector<forward_ticket>& tickets = part.span ? again : part.tickets;
    for (std::size_t i = over.last; i-- > std::max(first, over.first);) {
      graphed_layer& each = layers_[i];
      const bool formed = i > first || wants_x;
      const wanted what = formed ? wanted::only(each.x) : wanted::parameters_only();
      const grad_result result =
          each.op.backward(at, tickets[i - over.first], {gradient_of(each.y, gradient)}, what);
      gradient = formed ? result[each.x] : tensor<float>{};
    }
  }
  return wants_x ? gradient : tensor<float>{};
}

grad_counts network::counts() const {
  grad_counts all;
  for (const graphed_layer& each : layers_) add_counts(all, each.op.counts());
  return all;
}

}  // namespace reprise::nn
