#include "reprise/nn/optimizers.hpp"

#include <fmt/format.h>

#include <array>

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
  declare_gradients(declared_, *set_);
  declared_.state("weights", as_tensor(set_->values()));
  if (velocity_.size() != 0) declared_.state("velocity", as_tensor(velocity_.all()));
  return step{declared_, [this](step_scope& run) {
                for (const updated_span& span : updated_spans(*set_)) {
                  const view<float> velocity =
                      velocity_.size() == 0 ? view<float>{} : part(velocity_, span);
                  launch(run, reprise::sgd, read<float>{run[words_]},
                         read<float>{part(set_->gradients(), span)}, inout<float>{velocity},
                         inout<float>{part(set_->values(), span)});
                }
              }};
}

void sgd::update(site at, replay_cache& through) {
  if (updated_spans(*set_).empty()) return;
  const std::array<float, 3> words{options_.rate, options_.momentum, options_.weight_decay};
  const update_change changes{*set_};
  through.run(at, step_, {words_.from_host(words)});
}

adamw::adamw(parameter_set& of, pool& memory, stream_ref stream, const adamw_options& options)
    : set_{&of}, options_{options}, moments_{memory, 2 * of.elements(), stream}, step_{make()} {
  for (const float beta : {options.beta1, options.beta2}) {
    if (beta >= 0 && beta < 1) continue;
    throw usage_error{fmt::format(
        "adamw: a beta of {} does not decay; give one of 0 at least and less than 1", beta)};
  }
  fill(stream, write<float>{moments_.all()}, 0.0F);
}

step adamw::make() {
  declare_gradients(declared_, *set_);
  declared_.state("weights", as_tensor(set_->values()));
  declared_.state("moments", as_tensor(moments_.all()));
  return step{declared_, [this](step_scope& run) {
                for (const updated_span& span : updated_spans(*set_)) {
                  launch(run, reprise::adamw, read<float>{run[words_]},
                         read<float>{part(set_->gradients(), span)},
                         inout<float>{part(first_moments(), span)},
                         inout<float>{part(second_moments(), span)},
                         inout<float>{part(set_->values(), span)});
                }
              }};
}

void adamw::count_update() {
  ++updates_;
  left1_ *= static_cast<double>(options_.beta1);
  left2_ *= static_cast<double>(options_.beta2);
}

void adamw::set_updates(std::uint64_t count) {
  updates_ = 0;
  left1_ = left2_ = 1;
  while (updates_ != count) count_update();
}

void adamw::update(site at, replay_cache& through) {
  if (updated_spans(*set_).empty()) return;
  const double left1 = left1_ * static_cast<double>(options_.beta1);
  const double left2 = left2_ * static_cast<double>(options_.beta2);
  const std::array<float, 7> words{options_.rate,
                                   options_.beta1,
                                   options_.beta2,
                                   options_.eps,
                                   options_.weight_decay,
                                   static_cast<float>(1 - left1),
                                   static_cast<float>(1 - left2)};
  {
    const update_change changes{*set_};
    through.run(at, step_, {words_.from_host(words)});
  }
  count_update();
}

}  // namespace reprise::nn
