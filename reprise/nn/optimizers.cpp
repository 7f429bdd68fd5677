#include "reprise/nn/optimizers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <ranges>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/optimizers.hpp"

namespace reprise::nn {

namespace {

// Each set of parameters that have gradients is a key: 64 of them in a word.
void declare_gradients(signature& in, const parameter_set& set) {
  for (std::size_t first = 0; first < set.size(); first += 64) {
    in.key(fmt::format("with gradients, from {}", first), [&set, first] {
      std::uint64_t bits = 0;
      for (std::size_t i = first; i < set.size() && i < first + 64; ++i) {
        if (set[i].has_grad) bits |= std::uint64_t{1} << (i - first);
      }
      return bits;
    });
  }
}

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

view<float> part(view<float> all, const updated_span& span) {
  return all.subview(span.begin, span.end - span.begin);
}

bool has_gradients(const parameter_set& set) {
  return std::ranges::any_of(std::views::iota(std::size_t{0}, set.size()),
                             [&](std::size_t i) { return set[i].has_grad; });
}

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

std::vector<updated_span> updated_spans(const parameter_set& set) {
  std::vector<updated_span> spans;
  bool goes_on = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_updated = set[i].has_grad || REPRISE_MUTANT(update_takes_empty_gradients);
    if (is_updated) {
      if (!goes_on) spans.push_back({set.begin(i), 0});
      spans.back().end = set.end(i);
    }
    goes_on = is_updated;
  }
  return spans;
}

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
    const view<float> velocity = velocity_.size() == 0 ? view<float>{} : part(velocity_, span);
    launch(run, reprise::sgd, read<float>{run[words_]}, read<float>{part(set_->gradients(), span)},
           inout<float>{velocity}, inout<float>{part(set_->values(), span)});
  });
}

void sgd::update(site at, replay_cache& through) {
  if (!has_gradients(*set_)) return;
  const std::array<float, 3> words{options_.rate, options_.momentum, options_.weight_decay};
  run_update(at, through, step_, *set_, words_.from_host(words));
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
    launch(run, reprise::adamw, read<float>{run[words_]},
           read<float>{part(set_->gradients(), span)}, inout<float>{part(first_moments(), span)},
           inout<float>{part(second_moments(), span)}, inout<float>{part(set_->values(), span)});
  });
}

void adamw::update(site at, replay_cache& through) {
  if (!has_gradients(*set_)) return;
  // Of how many updates there were, and not kept up by products: what goes on from a count has the
  // bits of what never stopped.
  const auto correction = [t = static_cast<double>(updates_ + 1)](float beta) {
    return static_cast<float>(1 - std::pow(static_cast<double>(beta), t));
  };
  const std::array<float, 7> words{options_.rate,
                                   options_.beta1,
                                   options_.beta2,
                                   options_.eps,
                                   options_.weight_decay,
                                   correction(options_.beta1),
                                   correction(options_.beta2)};
  run_update(at, through, step_, *set_, words_.from_host(words));
  ++updates_;
}

}  // namespace reprise::nn
