#include "reprise/grad/graphed_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/replay/recorded_body.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

// Never destroyed: ops of static storage may outlive any other object.
struct all_ops {
  std::mutex guard;
  // In the order in which they were made, so that the same program does the same again.
  std::vector<std::pair<const graphed_core*, std::weak_ptr<graphed_core>>> living;
};
all_ops& known_ops() {
  static auto* const all = new all_ops;
  return *all;
}

// Held by nobody who waits for an op's turn: whoever makes an op in a call would wait for himself.
std::vector<std::shared_ptr<graphed_core>> living_ops() {
  all_ops& all = known_ops();
  const std::lock_guard held{all.guard};
  std::vector<std::shared_ptr<graphed_core>> living;
  for (const auto& [core, op] : all.living) {
    if (std::shared_ptr<graphed_core> one = op.lock()) living.push_back(std::move(one));
  }
  return living;
}

thread_local const graphed_core* in_call = nullptr;

std::string_view remedy_of(eager_cause cause) {
  switch (cause) {
    case eager_cause::key:
      return "call it as it was recorded, allow more graphed_options::keys, or reset()";
    case eager_cause::capture_failed: return "mend what it says, then reset()";
    case eager_cause::released: return "free memory, then reset()";
    case eager_cause::backward: return "mend what it says, then reset()";
    case eager_cause::precision:
      return "run the backward with the matrix products of the first one, or reset()";
    case eager_cause::suspended: return "leave the scope, or set graphed_options::record";
    case eager_cause::hold:
      return "run the pending backward first, or answer conflicts by recompute or slots";
    case eager_cause::observed: return "take the observer off to replay again";
  }
  return "";
}

std::string_view says(eager_cause cause) {
  switch (cause) {
    case eager_cause::key: return "the call differs from what was recorded";
    case eager_cause::capture_failed: return "its capture failed";
    case eager_cause::released: return "its frame was given back when memory ran out";
    case eager_cause::backward: return "the capture of its backward failed";
    case eager_cause::precision: return "the matrix products differ from those recorded";
    case eager_cause::suspended: return "recording is suspended, off, or somebody else's";
    case eager_cause::hold: return "a backward is owed";
    case eager_cause::observed: return "an observer is told of its marks";
  }
  return "";
}

}  // namespace

graphed_core::graphed_core(erased_op op, byte_budget& budget, graphed_options options)
    : budget_{budget},
      options_{options},
      parts_{std::make_shared<op_parts>(std::move(op), draws_)} {
  if (const slots* several = std::get_if<slots>(&options_.conflict);
      (several != nullptr && several->count < 1) || options_.keys < 1) {
    throw usage_error{
        fmt::format("op '{}': slots and keys are 1 or more, not {}", name(),
                    several != nullptr && several->count < 1 ? several->count : options_.keys)};
  }
  // Frames and calls hold the parts; what they run calls back into none of this object.
  const auto body = [this, parts = parts_.get()](step_scope& run) {
    parts->run_forward(run, eager_saves_, precision_now());
  };
  eager_forward_.emplace(parts_->forward, body);
  recorded_forward_.emplace(parts_->recorded, body);
}

std::shared_ptr<graphed_core> graphed_core::make(erased_op op, byte_budget& budget,
                                                 const graphed_options& options) {
  auto made = std::make_shared<graphed_core>(std::move(op), budget, options);
  all_ops& all = known_ops();
  const std::lock_guard held{all.guard};
  all.living.emplace_back(made.get(), made);
  return made;
}

graphed_core::call_here::call_here(const graphed_core& of) {
  const auto refuse = [&](std::string_view where, std::string_view remedy) {
    throw usage_error{fmt::format("op '{}': it is called inside {}; {}", of.name(), where, remedy)};
  };
  if (in_call != nullptr) {
    refuse("a body of op '" + in_call->name() + "'", "make one op of both, or call it outside");
  }
  if (recorded_body::is_here()) {
    refuse("the body of a step that is being recorded",
           "call it outside of the step, or in a break");
  }
  in_call = &of;
}
graphed_core::call_here::~call_here() {
  in_call = nullptr;
}

graphed_core::~graphed_core() {
  {
    all_ops& all = known_ops();
    const std::lock_guard held{all.guard};
    std::erase_if(all.living, [this](const auto& one) { return one.first == this; });
  }
  leave([](lane&) {});
}

lane& graphed_core::home(stream_ref stream) {
  if (!home_) home_ = lane::of(stream);
  return *home_;
}

void graphed_core::reset_all() {
  if (in_call != nullptr) {
    throw usage_error{fmt::format(
        "op '{}': reset() is called inside a call of it; call it between steps", in_call->name())};
  }
  for (const auto& one : living_ops()) one->reset();
}

void graphed_core::reset() {
  const std::lock_guard held{turn_};
  capture_failed_ = false;
  released_ = false;
  leave([](lane& here) { here.start_over(); });
}

// Gives up its frames, and its lane.
template <class Also>
void graphed_core::leave(Also&& also) {
  frames_.clear();
  if (!home_) return;
  try {
    const std::lock_guard turn{home_->turn};
    also(*home_);
    home_->reap(std::source_location::current());
  } catch (const error& failed) {
    report_error(failed.what());
  }
  home_ = nullptr;
}

// A body that asks its own op has its turn already.
std::unique_lock<mutex> graphed_core::own_turn() const {
  return in_call == this ? std::unique_lock<mutex>{} : std::unique_lock{turn_};
}

grad_counts graphed_core::counts() const {
  const auto held = own_turn();
  return counts_;
}

std::size_t graphed_core::frames() const {
  const auto held = own_turn();
  return frames_.size();
}

std::size_t graphed_core::bytes() const {
  const auto held = own_turn();
  if (!home_) return 0;
  const std::unique_lock turn =
      in_call == this ? std::unique_lock<mutex>{} : std::unique_lock{home_->turn};
  std::set<const frame_memory*> memories;
  std::size_t total = 0;
  for (const used_frame& used : frames_) {
    total += used.in->share.bytes();
    if (memories.insert(used.in->memory.get()).second) total += used.in->memory->bytes();
  }
  return total;
}

std::shared_ptr<const reason> graphed_core::why_eager(eager_cause cause) {
  auto& why = reasons_[static_cast<std::size_t>(cause)];
  if (!why) {
    why = because(std::string{name_of(cause)},
                  {{name(), "a replay", std::string{says(cause)}, std::string{remedy_of(cause)}}});
  }
  return why;
}

void graphed_core::tell_once(eager_cause cause, std::string_view text) {
  if (!options_.tells || !told_.insert(cause).second) return;
  log_line(fmt::format("op '{}' runs eagerly ({}): {}; {}", name(), name_of(cause),
                       text.empty() ? says(cause) : text, remedy_of(cause)));
}

// What happened, without a remedy: an op has its own.
std::string graphed_core::actual_of(const reason& why) {
  return why.breaches.empty() ? why.rule : why.rule + ": " + why.breaches.front().actual;
}

// The surface.

graphed::graphed(erased_op op, byte_budget& budget, graphed_options options)
    : core_{graphed_core::make(std::move(op), budget, options)} {}
graphed::~graphed() = default;
graphed::graphed(graphed&&) noexcept = default;
graphed& graphed::operator=(graphed&&) noexcept = default;
graphed::graphed(const graphed& other)
    : graphed{other.core_->op(), other.core_->budget(), other.core_->options()} {}

forward_result graphed::forward(site at, operands given) {
  return core_->forward(at, given);
}
forward_result graphed::infer(site at, operands given) {
  return core_->infer(at, given);
}
grad_result graphed::backward(site at, const forward_ticket& ticket, operands cotangents,
                              const wanted& what) {
  return core_->backward(at, ticket, cotangents, what);
}
void graphed::reset() {
  graphed_core::reset_all();
}
void graphed::forget(const forward_ticket& ticket) {
  core_->forget(ticket);
}
void graphed::move_live_gradients(site at) {
  core_->move_live_gradients(at);
}
void graphed::drain(std::source_location place) {
  core_->drain(place);
}
void graphed::observe(std::shared_ptr<mark_observer> observer) {
  core_->observe(std::move(observer));
}
void graphed::stop_observing() {
  core_->stop_observing();
}
bool graphed::is_observed() const {
  return core_->is_observed();
}
void graphed::observe_all(std::shared_ptr<mark_observer> observer) {
  graphed_core::observe_all(std::move(observer));
}
void graphed::stop_observing_all() {
  graphed_core::stop_observing_all();
}
std::vector<std::shared_ptr<mark_observer>> graphed::observers_of_all() {
  return graphed_core::observers_of_all();
}
const std::string& graphed::name() const {
  return core_->name();
}
const graphed_options& graphed::options() const {
  return core_->options();
}
grad_counts graphed::counts() const {
  return core_->counts();
}
std::size_t graphed::frames() const {
  return core_->frames();
}
std::size_t graphed::bytes() const {
  return core_->bytes();
}

namespace {

void require_of(signature_id asked, signature_id of) {
  if (asked == of) return;
  throw usage_error{"the tensor asked for is another op's; use the handles of this op's signature"};
}

}  // namespace

const std::shared_ptr<held_tensor>& forward_result::output_at(int slot, signature_id asked) const {
  require_of(asked, of);
  const auto& held = outputs[static_cast<std::size_t>(slot)];
  if (held == nullptr) {
    throw usage_error{"the output asked for is a state; read it with forward_result::state"};
  }
  return held;
}

const std::shared_ptr<state_source>& forward_result::state_at(int slot, signature_id asked) const {
  require_of(asked, of);
  const auto& state = states[static_cast<std::size_t>(slot)];
  if (state == nullptr) {
    throw usage_error{
        "the output asked for is no state; declare it with signature::returned_state, or read it "
        "with []"};
  }
  return state;
}

const std::shared_ptr<held_tensor>& grad_result::gradient_at(int slot, signature_id asked) const {
  require_of(asked, of);
  const auto& held = gradients[static_cast<std::size_t>(slot)];
  if (held == nullptr) {
    throw usage_error{
        "the gradient asked for was not formed: the call did not want it, or the input can have "
        "none; name it in wanted::only"};
  }
  return held;
}

std::string grad_metrics() {
  std::string text =
      "# HELP reprise_grad_calls_total Calls of graphed ops, by what happened to them.\n"
      "# TYPE reprise_grad_calls_total counter\n";
  std::string costs =
      "# HELP reprise_grad_stale_microseconds_total Host time of forwards replayed again.\n"
      "# TYPE reprise_grad_stale_microseconds_total counter\n";
  std::map<std::string, grad_counts> by_name;
  for (const auto& one : living_ops()) by_name[one->name()] += one->counts();
  for (const auto& [name, sum] : by_name) {
    std::string label;
    for (const char c : name) {
      if (c == '"' || c == '\\') label += '\\';
      label += c == '\n' ? ' ' : c;
    }
    const auto put = [&](std::string_view how, std::uint64_t count) {
      fmt::format_to(std::back_inserter(text),
                     "reprise_grad_calls_total{{op=\"{}\",how=\"{}\"}} {}\n", label, how, count);
    };
    put("forward_capture", sum.forward_capture);
    put("forward_shared", sum.forward_shared);
    put("forward_replay", sum.forward_replay);
    put("backward_capture", sum.backward_capture);
    put("backward_replay", sum.backward_replay);
    put("stale_replay", sum.stale_replay);
    put("stale_by_pool", sum.stale_by_pool);
    put("inference", sum.inference);
    for (std::size_t i = 0; i < eager_causes; ++i) {
      const std::string_view cause = name_of(static_cast<eager_cause>(i));
      put(fmt::format("eager_forward_{}", cause), sum.eager_forward[i]);
      put(fmt::format("eager_backward_{}", cause), sum.eager_backward[i]);
    }
    fmt::format_to(std::back_inserter(costs),
                   "reprise_grad_stale_microseconds_total{{op=\"{}\"}} {:.1f}\n", label,
                   sum.stale_us);
  }
  return text + costs;
}

}  // namespace reprise
