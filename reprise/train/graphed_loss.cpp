#include "reprise/train/graphed_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/recorded_body.hpp"
#include "reprise/telemetry/log.hpp"
#include "reprise/train/gates.hpp"
#include "reprise/train/loss_step.hpp"
#include "reprise/train/loss_workspace.hpp"
#include "reprise/train/part_events.hpp"

namespace reprise {

namespace {

constexpr int most_failures = 4;

std::string names_of(const std::vector<loss_term>& terms) {
  std::string all;
  for (const loss_term& one : terms) all += (all.empty() ? "" : ", ") + one.name;
  return all;
}

// What one recording can give the gradients of, however often a call of it is made again.
void require_pure(const loss_term& term) {
  const signature& op = term.op.op.declared;
  const auto refuse = [&](std::string_view why) {
    throw usage_error{fmt::format("graphed loss: term '{}' {}", term.name, why)};
  };
  for (std::size_t i = 0; i < op.inputs().size(); ++i) {
    const int slot = static_cast<int>(i);
    if (slot == term.op.predictions_slot || slot == term.op.targets_slot) continue;
    if (op.inputs()[i].optional) continue;
    refuse(
        fmt::format("needs the input '{}' beside its predictions and targets; gather it into "
                    "one of them",
                    op.inputs()[i].name));
  }
  for (const declared_use& use : op.uses()) {
    if (use.trained == nullptr) continue;
    refuse(
        fmt::format("trains the parameter '{}'; put that into a module in front of it", use.name));
  }
  for (const declared_write& write : op.writes()) {
    if (!write.restored) continue;
    refuse(
        fmt::format("updates the state '{}', which a call that is made again would update "
                    "twice; update it outside",
                    write.name));
  }
}

std::string remedy_of(std::string_view rule) {
  if (rule == "key") return "call it with the shapes that were recorded";
  if (rule == "observed") return "take the observer off";
  if (rule == "low precision") return "add the kernels' bodies, or leave the casts out";
  if (rule == "workspace") return "call it once more";
  if (rule == "first replay") return "mend what was told then, and start the next run";
  return "switch the part on and start a run";
}

std::string says(std::string_view rule) {
  if (rule == "key") return "a call of other shapes";
  if (rule == "observed") return "an observer is told of its marks";
  if (rule == "low precision") return "the device has no bodies for the casts";
  if (rule == "workspace") return "what its terms keep had to be sized first";
  if (rule == "first replay") return "its first replay failed too often";
  return "the part records nothing now";
}

std::vector<std::int64_t> shapes_of(bindings given) {
  std::vector<std::int64_t> all;
  for (const binding& b : given) {
    all.push_back(b.slot);
    for (int axis = 0; axis < b.to.shape.rank; ++axis) all.push_back(b.to.shape[axis]);
  }
  return all;
}

}  // namespace

struct graphed_loss::on_device {
  explicit on_device(device_ref on)
      : device{on}, results{on, "results of losses"}, eager{on, {.record = false}} {}

  device_ref device;
  pool results;
  replay_cache eager;
};

graphed_loss::graphed_loss(std::vector<loss_term> terms, byte_budget& budget,
                           const part_options& options)
    : terms_{std::move(terms)}, budget_{budget}, life_{"graphed loss", names_of(terms_), options} {
  for (const loss_term& term : terms_) require_pure(term);
  build();
}

graphed_loss::~graphed_loss() = default;

const loss_term& graphed_loss::at(std::size_t term) const {
  if (term < terms_.size()) return terms_[term];
  throw usage_error{fmt::format("{}: there is no term {}; there are {}, which count from 0",
                                life_.title(), term, terms_.size())};
}

graphed_loss::on_device& graphed_loss::here(site at) {
  if (here_ == nullptr || !(here_->device == at.stream.device())) {
    here_ = std::make_unique<on_device>(at.stream.device());
  }
  return *here_;
}

void graphed_loss::build() {
  step_ = std::make_unique<loss_step>(names_of(terms_), terms_, true);
  inference_ = std::make_unique<loss_step>(names_of(terms_) + " without gradients", terms_, false);
  kept_.clear();
  for (const loss_term& term : terms_) {
    kept_.push_back(term.workspace == nullptr ? 0 : term.workspace->version().value());
  }
}

bool graphed_loss::has_grown() const {
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    const loss_workspace* const kept = terms_[i].workspace;
    if (kept != nullptr && kept->version().value() != kept_[i]) return true;
  }
  return false;
}

// What was recorded keeps addresses that are gone; the next call records anew.
void graphed_loss::follow_growth() {
  if (!has_grown() || REPRISE_MUTANT(growth_is_not_followed)) return;
  let_go().reset();
  build();
}

std::vector<std::shared_ptr<mark_observer>> graphed_loss::watching() const {
  std::vector<std::shared_ptr<mark_observer>> told = graphed::observers_of_all();
  for (const auto& one : observers_) {
    if (std::ranges::find(told, one) == told.end()) told.push_back(one);
  }
  return told;
}

void graphed_loss::observe(std::shared_ptr<mark_observer> observer) {
  observers_.push_back(std::move(observer));
}

void graphed_loss::stop_observing() {
  observers_.clear();
}

const char* graphed_loss::why_eager(site at) {
  if (!life_.records()) return "off";
  const device_ref device = at.stream.device();
  const bool has_recorded = recorded_ != nullptr && recorded_->recordings() != 0;
  const bool is_watched = !watching().empty();
  now_.clear();
  certify(terms_, device, now_);
  if (!has_recorded) {
    std::swap(certified_, now_);
  } else if (!REPRISE_MUTANT(drift_is_not_looked_at)) {
    std::string drifted = drift(certified_, now_);
    if (drifted.empty() && is_watched) drifted = "somebody observes its marks";
    if (!drifted.empty()) {
      if (life_.retire(drifted)) let_go().reset();
      return "off";
    }
  }
  if (is_watched) return "observed";
  if (why_not_in(life_.options().in, device).empty()) return nullptr;
  ++counts_.low_precision;
  return "low precision";
}

// Its results last beyond the call, and no graph could repeat that.
void graphed_loss::require_outside(site at) const {
  if (!at.stream.capturing() && !recorded_body::is_here()) return;
  throw usage_error{
      fmt::format("{}: it is called inside a capture, or a body that is being recorded; call it "
                  "outside, or run its ops there (grad/inline_pass.hpp)",
                  life_.title())};
}

graphed_loss::result graphed_loss::operator()(site at, std::span<const tensor<float>> predictions,
                                              std::span<const operand> targets,
                                              view<const float> scale) {
  const precision_scope in{life_.options().in};
  require_outside(at);
  follow_growth();
  const std::vector<binding> given = step_->bind(at, predictions, targets, scale);
  order_.enter(at.stream, at.place);
  const step_result made = run(at, given);
  result all = result_of(at, *step_, made, predictions);
  follow_growth();
  return all;
}

graphed_loss::result graphed_loss::infer(site at, std::span<const tensor<float>> predictions,
                                         std::span<const operand> targets) {
  const precision_scope in{life_.options().in};
  require_outside(at);
  follow_growth();
  const std::vector<binding> given = inference_->bind(at, predictions, targets, {});
  order_.enter(at.stream, at.place);
  const step_result made = run_eagerly(at, inference_->what(), given, "off");
  result all = result_of(at, *inference_, made, predictions);
  follow_growth();
  return all;
}

step_result graphed_loss::run(site at, bindings given) {
  if (const char* const rule = why_eager(at)) return run_eagerly(at, step_->what(), given, rule);
  return record_or_replay(at, given);
}

step_result graphed_loss::record_or_replay(site at, bindings given) {
  const step& what = step_->what();
  const std::uint64_t key = contract::hash(what.declared(), given, key_parts_);
  const bool has_recorded = recorded_ != nullptr && recorded_->recordings() != 0;
  if (has_recorded && key != key_) return run_eagerly(at, what, given, "key");
  if (failures_ >= most_failures) return run_eagerly(at, what, given, "first replay");
  const bool keeps =
      std::ranges::any_of(terms_, [](const loss_term& term) { return term.workspace != nullptr; });
  if (!has_recorded && keeps && sized_.insert(shapes_of(given)).second) {
    return run_eagerly(at, what, given, "workspace");
  }
  if (recorded_ == nullptr) {
    recorded_ =
        std::make_unique<replay_cache>(at.stream.device(), cache_options{.budget = &budget_});
  }
  philox_counter* const random = what.declared().random();
  const std::optional<philox_counter> drawn_before =
      random != nullptr ? std::optional{*random} : std::nullopt;
  try {
    step_result made = recorded_->run(at, what, given);
    switch (made.how) {
      case ran::captured:
        key_ = key;
        ++counts_.captured;
        break;
      case ran::replayed:
        has_replayed_ = true;
        ++counts_.replayed;
        break;
      case ran::eager: ++counts_.eager; break;
    }
    return made;
  } catch (const error& failed) {
    if (has_replayed_ || REPRISE_MUTANT(first_replay_is_not_tried)) throw;
    let_go().reset();
    if (random != nullptr) *random = *drawn_before;
    // An error of the caller's is thrown here as well.
    step_result made = run_eagerly(at, what, given, "first replay");
    ++failures_;
    if (!std::exchange(has_told_, true)) {
      log_line(fmt::format("{}: its first replay failed, and the call ran eagerly: {}",
                           life_.title(), failed.what()));
    }
    return made;
  }
}

step_result graphed_loss::run_eagerly(site at, const step& what, bindings given, const char* rule) {
  auto& why = reasons_[rule];
  if (why == nullptr)
    why = because(rule, {{life_.title(), "a replay", says(rule), remedy_of(rule)}});
  replay_cache& cache = here(at).eager;
  struct told_while {
    replay_cache& of;
    ~told_while() { of.stop_observing(); }
  } const told{cache};
  for (auto& one : watching()) cache.observe(std::move(one));
  step_result made = cache.run(at, what, given, why);
  ++counts_.eager;
  return made;
}

tensor<float> graphed_loss::handed_out(site at, const step_result& made, int slot) {
  const auto i = static_cast<std::size_t>(slot);
  const tensor_ref& from = made.table->outputs()[i];
  if (life_.options().returned == gradients::cloned) {
    auto held = hold_memory(here(at).results, from.type, from.shape, at.stream, at.place);
    copy_bytes(at, from.data, held->at.data, from.bytes());
    return tensor<float>{std::move(held)};
  }
  auto held = std::make_shared<held_tensor>();
  held->at = from;
  held->where = [table = made.table, id = made.replay, i,
                 hold = made.table->hold(made.replay, i, "a loss or its gradient")] {
    return table->leased(id, i, hold.get());
  };
  return tensor<float>{std::move(held)};
}

graphed_loss::result graphed_loss::result_of(site at, const loss_step& of, const step_result& made,
                                             std::span<const tensor<float>> predictions) {
  result all;
  all.loss = handed_out(at, made, of.total());
  all.terms.resize(terms_.size());
  all.gradients.resize(terms_.size());
  for (std::size_t i = 0; i < terms_.size(); ++i) {
    if (!predictions[i]) continue;
    all.terms[i] = handed_out(at, made, of.loss_of(i));
    if (of.gradient_of(i) >= 0) all.gradients[i] = handed_out(at, made, of.gradient_of(i));
  }
  return all;
}

// Nothing is recorded from here on; what was, is returned, and waits for its work when it goes.
std::unique_ptr<replay_cache> graphed_loss::let_go() {
  std::unique_ptr<replay_cache> held = std::move(recorded_);
  has_replayed_ = false;
  certified_.clear();
  if (held != nullptr && held->recordings() != 0) ++counts_.clears;
  return held;
}

// As graphed_network::clear.
void graphed_loss::clear(std::source_location place) {
  if (!REPRISE_MUTANT(fields_are_reset_behind_the_drain)) life_.clear();
  std::unique_ptr<replay_cache> held = let_go();
  failures_ = 0;
  if (held != nullptr && held->recordings() != 0) held->drain(place);
  held.reset();
  if (REPRISE_MUTANT(fields_are_reset_behind_the_drain)) life_.clear();
}

void graphed_loss::open(site) {
  if (!life_.is_on()) return;
  std::string why;
  if (terms_.empty()) {
    why = "it has no term; give it one";
  } else if (!watching().empty()) {
    why = observed_already;
  }
  life_.open(why, counts());
}

part_counts graphed_loss::counts() const {
  part_counts all = counts_;
  all.retirements = life_.retirements();
  return all;
}

}  // namespace reprise
