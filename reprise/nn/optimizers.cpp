#include "reprise/nn/optimizers.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/optimizers.hpp"

namespace reprise::nn {

namespace {

// All that one update changes is of another version from its begin on, and again at its end,
// however that is reached.
class update_change {
 public:
  explicit update_change(parameter_set& set) : set_{set} { bump(); }
  ~update_change() { bump(); }
  update_change(const update_change&) = delete;
  update_change& operator=(const update_change&) = delete;

 private:
  void bump() noexcept {
    if (REPRISE_MUTANT(update_moves_no_version)) return;
    for (std::size_t i = 0; i < set_.size(); ++i) {
      if (set_[i].has_grad) set_[i].version.bump();
    }
  }

  parameter_set& set_;
};

// What both optimizers are: a step that runs `kernel_of` for each span, and one run of it.
template <class F>
step update_step(signature& declared, parameter_set& set, F kernel_of) {
  declare_gradients(declared, set);
  declared.state("weights", as_tensor(set.values()));
  return step{declared, [&set, kernel_of = std::move(kernel_of)](step_scope& run) {
                for (const updated_span& span : updated_spans(set)) kernel_of(run, span);
              }};
}

void run_update(site at, replay_cache& through, const step& update, parameter_set& set,
                const binding& words) {
  const update_change changes{set};
  through.run(at, update, {words});
}

// What `optimizer` gives to a larger step, by its members.
template <class O, std::size_t N>
update_part part_by(parameter_set& set, O& optimizer, std::array<float, N> (O::*words)() const,
                    void (O::*enqueue)(site, view<const float>, const updated_span&) const) {
  return {.set = &set,
          .state = {},
          .word_count = N,
          .words =
              [&optimizer, words](std::span<float> into) {
                std::ranges::copy((optimizer.*words)(), into.begin());
              },
          .enqueue =
              [&optimizer, enqueue](site at, view<const float> from,
                                    std::span<const updated_span> over) {
                for (const updated_span& span : over) (optimizer.*enqueue)(at, from, span);
              },
          .count = {}};
}

const adamw_options& validated(const adamw_options& options) {
  for (const float beta : {options.beta1, options.beta2}) {
    if (beta >= 0 && beta < 1) continue;
    throw usage_error{fmt::format(
        "adamw: a beta of {} does not decay; give one of 0 at least and less than 1", beta)};
  }
  if (!(options.eps > 0)) {
    throw usage_error{
        fmt::format("adamw: an eps of {} may divide zero by zero; give one over 0", options.eps)};
  }
  return options;
}

}  // namespace

sgd::sgd(parameter_set& of, pool& memory, stream_ref stream, const sgd_options& options)
    : set_{&of},
      options_{options},
      velocity_{options.momentum == 0 ? buffer<float>{}
                                      : buffer<float>{memory, of.elements(), stream}},
      step_{make()} {
  if (velocity_.size() != 0) fill(stream, write<float>{velocity_.all()}, 0.0F);
}

step sgd::make() {
  if (velocity_.size() != 0) declared_.state("velocity", as_tensor(velocity_.all()));
  return update_step(declared_, *set_, [this](step_scope& run, const updated_span& span) {
    enqueue(run, run[words_], span);
  });
}

std::array<float, 3> sgd::words() const {
  return {options_.rate, options_.momentum, options_.weight_decay};
}

void sgd::enqueue(site at, view<const float> words, const updated_span& span) const {
  const view<float> velocity = velocity_.size() == 0 ? view<float>{} : part_of(velocity_, span);
  launch(at, reprise::sgd, read<float>{words}, read<float>{part_of(set_->gradients(), span)},
         inout<float>{velocity}, inout<float>{part_of(set_->values(), span)});
}

void sgd::update(site at, replay_cache& through) {
  if (!has_gradients(*set_)) return;
  run_update(at, through, step_, *set_, words_.from_host(words()));
}

update_part sgd::part() {
  update_part made = part_by(*set_, *this, &sgd::words, &sgd::enqueue);
  if (velocity_.size() != 0) made.state.push_back(as_tensor(velocity_.all()));
  made.count = [] {};
  return made;
}

adamw::adamw(parameter_set& of, pool& memory, stream_ref stream, const adamw_options& options)
    : set_{&of},
      options_{validated(options)},
      moments_{memory, 2 * of.elements(), stream},
      step_{make()} {
  fill(stream, write<float>{moments_.all()}, 0.0F);
}

step adamw::make() {
  declared_.state("moments", as_tensor(moments_.all()));
  return update_step(declared_, *set_, [this](step_scope& run, const updated_span& span) {
    enqueue(run, run[words_], span);
  });
}

// The corrections are of how many updates there were, and not kept up by products: what goes on
// from a count has the bits of what never stopped.
std::array<float, 7> adamw::words() const {
  const auto correction = [t = static_cast<double>(updates_ + 1)](float beta) {
    return static_cast<float>(1 - std::pow(static_cast<double>(beta), t));
  };
  return {options_.rate,
          options_.beta1,
          options_.beta2,
          options_.eps,
          options_.weight_decay,
          correction(options_.beta1),
          correction(options_.beta2)};
}

void adamw::enqueue(site at, view<const float> words, const updated_span& span) const {
  launch(at, reprise::adamw, read<float>{words}, read<float>{part_of(set_->gradients(), span)},
         inout<float>{part_of(first_moments(), span)},
         inout<float>{part_of(second_moments(), span)},
         inout<float>{part_of(set_->values(), span)});
}

void adamw::update(site at, replay_cache& through) {
  if (!has_gradients(*set_)) return;
  run_update(at, through, step_, *set_, words_.from_host(words()));
  ++updates_;
}

update_part adamw::part() {
  update_part made = part_by(*set_, *this, &adamw::words, &adamw::enqueue);
  made.state.push_back(as_tensor(moments_.all()));
  made.count = [this] { ++updates_; };
  return made;
}

}  // namespace reprise::nn
