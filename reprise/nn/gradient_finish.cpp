#include "reprise/nn/gradient_finish.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/nn/updated_spans.hpp"
#include "reprise/ops/gradient_norm.hpp"

namespace reprise::nn {

namespace {

void note_no_gradients(site at, view<float> facts) {
  fill(at, write<float>{facts.subview(0, 1)}, 0.0F);
  fill(at, write<float>{facts.subview(1, 2)}, 1.0F);
}

// The body of the step. (A member of the class would take `read` for its own.)
void finish(step_scope& run, const parameter_set& set, view<const float> by, view<float> facts) {
  const std::vector<updated_span> spans = REPRISE_MUTANT(norm_is_of_dropped_gradients)
                                              ? std::vector<updated_span>{{0, set.elements()}}
                                              : updated_spans(set);
  const read<float> words{by};
  const view<double> squares = run.scratch<double>({1});
  gradient_rule rule = gradient_rule::write;
  for (const updated_span& span : spans) {
    launch(run, gradient_squares, words, read<float>{part_of(set.gradients(), span)},
           inout<double>{squares}, rule);
    rule = gradient_rule::add;
  }
  launch(run, gradient_norm, words, read<double>{squares}, write<float>{facts});
  for (const updated_span& span : spans) {
    launch(run, scale_gradients, words, read<float>{facts},
           inout<float>{part_of(set.gradients(), span)});
  }
}

}  // namespace

gradient_finish::gradient_finish(parameter_set& of, pool& memory, stream_ref stream)
    : set_{&of}, facts_{memory, 3, stream}, step_{make()} {
  note_no_gradients(stream, facts_);
}

step gradient_finish::make() {
  declare_gradients(declared_, *set_);
  declared_.state("gradients", as_tensor(set_->gradients()));
  declared_.overwrites("facts", as_tensor(facts_.all()));
  return step{declared_, [this](step_scope& run) { finish(run, *set_, run[words_], facts_); }};
}

void gradient_finish::run(site at, replay_cache& through, float scale, float most) {
  if (!(scale > 0 && std::isfinite(scale))) {
    throw usage_error{fmt::format(
        "gradient_finish: a loss scale of {} cannot be divided out; give one over 0", scale)};
  }
  if (!(most >= 0 && std::isfinite(most))) {
    throw usage_error{fmt::format(
        "gradient_finish: {} is no bound of a norm; give one over 0, or 0 for none", most)};
  }
  if (!has_gradients(*set_)) {
    note_no_gradients(at, facts_);
    return;
  }
  const std::array<float, 2> words{scale, most};
  through.run(at, step_, {words_.from_host(words)});
}

gradient_facts gradient_finish::read(stream_ref stream) const {
  std::array<float, 2> found{};
  copy(stream, reprise::read<float>{facts()}, write<float>{view<float>{found.data(), 2}});
  stream.synchronize();
  return {found[0], found[1] == 1.0F};
}

}  // namespace reprise::nn
