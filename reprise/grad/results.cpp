// What a forward hands out: outputs in memory of their own, and states that are read later.
#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/grad/graphed_core.hpp"

namespace reprise {

namespace {

std::shared_ptr<held_tensor> hold_copy(const tensor_ref& of, pool& from, site at) {
  std::shared_ptr<held_tensor> held = hold_memory(from, of.type, of.shape, at.stream, at.place);
  copy_bytes(at, of.data, held->at.data, of.bytes());
  return held;
}

// Of an eager call: it is there already.
class copied_state final : public state_source {
 public:
  explicit copied_state(std::shared_ptr<held_tensor> held) : held_{std::move(held)} {}
  std::shared_ptr<held_tensor> read(site) override { return held_; }

 private:
  std::shared_ptr<held_tensor> held_;
};

// In a frame, for as long as its ticket owns it.
class state_in_frame final : public state_source {
 public:
  state_in_frame(const std::shared_ptr<frame>& in, ticket_id ticket, std::size_t slot,
                 std::string name)
      : in_{in}, lane_{in->in}, ticket_{ticket}, slot_{slot}, name_{std::move(name)} {}

  std::shared_ptr<held_tensor> read(site at) override {
    if (at.stream.capturing()) {
      throw usage_error{fmt::format(
          "the state '{}' is read inside a capture, which would copy whatever lies there when it "
          "is launched; read it before",
          name_)};
    }
    const std::lock_guard turn{lane_->turn};
    const std::shared_ptr<frame> in = in_.lock();
    if (in == nullptr || !in->is_owned_by(ticket_)) refuse(in.get());
    lane_->enter(at);
    return hold_copy(in->saves.outputs[slot_], lane_->results(), at);
  }

 private:
  [[noreturn]] void refuse(const frame* in) const {
    std::string_view why = "a later forward may have written it";
    if (in == nullptr || in->state == frame_state::released) {
      why = "its memory was given back";
    } else if (in->state == frame_state::consumed || in->state == frame_state::poisoned) {
      why = "a backward has used it up";
    }
    throw stale_error{
        fmt::format("the state '{}' of forward {} is gone: {}; read it right behind its forward",
                    name_, static_cast<std::uint64_t>(ticket_), why)};
  }

  std::weak_ptr<frame> in_;
  std::shared_ptr<lane> lane_;
  ticket_id ticket_;
  std::size_t slot_;
  std::string name_;
};

}  // namespace

forward_result graphed_core::result_of(const bound_call& bound) const {
  const signature& declared = parts_->op.declared;
  forward_result result;
  result.ticket = forward_ticket{bound.call};
  result.of = declared.id();
  result.outputs.resize(declared.outputs().size());
  result.states.resize(declared.outputs().size());
  return result;
}

void graphed_core::make_outputs(site at, bound_call& bound, std::span<const tensor_ref> made,
                                forward_result& result, pool& results) const {
  bound.call->outputs.clear();
  for (const tensor_ref& one : made) bound.call->outputs.push_back(one.shape);
  for (const binding& b : bound.given) {
    if (!b.is_output) continue;
    auto held = std::make_shared<held_tensor>();
    held->at = made[static_cast<std::size_t>(b.slot)];
    held->at.data = b.to.data;
    result.outputs[static_cast<std::size_t>(b.slot)] = std::move(held);
  }
  for (std::size_t slot = 0; slot < made.size(); ++slot) {
    const bool is_state = parts_->op.declared.outputs()[slot].is_state;
    if (result.outputs[slot] == nullptr && !is_state) {
      result.outputs[slot] =
          hold_memory(results, made[slot].type, made[slot].shape, at.stream, at.place);
    }
  }
}

// Those of memory of their own. What the caller has bound is copied behind the launch: no kernel
// can write to any memory that a copy can.
void graphed_core::place_outputs(const forward_result& result,
                                 std::vector<std::uint64_t>& places) const {
  for (std::size_t slot = 0; slot < result.outputs.size(); ++slot) {
    const auto& held = result.outputs[slot];
    if (held == nullptr || held->memory.data() == nullptr) continue;
    places[slot] = reinterpret_cast<std::uintptr_t>(held->at.data);
  }
}

void graphed_core::copy_outputs(site at, std::span<const tensor_ref> made,
                                const forward_result& result) const {
  for (std::size_t slot = 0; slot < made.size(); ++slot) {
    const auto& held = result.outputs[slot];
    if (held == nullptr || held->memory.data() == nullptr) continue;
    copy_bytes(at, made[slot].data, held->at.data, held->at.bytes());
  }
}

void graphed_core::take_outputs(site at, bound_call& bound, std::span<const tensor_ref> made,
                                forward_result& result, pool& results) const {
  make_outputs(at, bound, made, result, results);
  copy_outputs(at, made, result);
  for (std::size_t slot = 0; slot < made.size(); ++slot) {
    if (!parts_->op.declared.outputs()[slot].is_state) continue;
    result.states[slot] = std::make_shared<copied_state>(hold_copy(made[slot], results, at));
  }
}

void graphed_core::leave_states(const std::shared_ptr<frame>& in, forward_result& result) const {
  for (std::size_t slot = 0; slot < result.states.size(); ++slot) {
    const declared_output& declared = parts_->op.declared.outputs()[slot];
    if (!declared.is_state) continue;
    result.states[slot] =
        std::make_shared<state_in_frame>(in, result.ticket.id(), slot, declared.name);
  }
}

// The op's generator goes on behind what the call has drawn.
void graphed_core::moved_on() {
  philox_counter* const counter = parts_->op.declared.random();
  if (counter != nullptr) *counter = draws_;
}

signature graphed_core::inference_signature() const {
  signature sig = parts_->op.declared.variant(name() + " without backward");
  key_by_precision(sig);
  return sig;
}

}  // namespace reprise
