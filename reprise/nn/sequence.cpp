#include "reprise/nn/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/nn/shapes.hpp"

namespace reprise::nn {

namespace {

// Only ever read.
tensor_ref ref_of(view<const float> elements, const dims& shape) {
  return as_tensor(view<float>{const_cast<float*>(elements.data()), elements.size()}, shape);
}

// One tensor at `slot` of so many.
std::vector<tensor_ref> only(std::size_t count, int slot, const tensor_ref& tensor) {
  std::vector<tensor_ref> all(count);
  all[static_cast<std::size_t>(slot)] = tensor;
  return all;
}

std::vector<int> only(std::size_t count, int slot, int outer) {
  std::vector<int> all(count, -1);
  all[static_cast<std::size_t>(slot)] = outer;
  return all;
}

}  // namespace

sequence::sequence(std::string name)
    : declared_{std::move(name)},
      x{declared_.in<float>("x", any_rows)},
      y{declared_.out<float>("y")} {}

void sequence::append(part made) {
  const signature& op = made.op.declared;
  const auto refuse = [&](std::string_view why) {
    throw usage_error{
        fmt::format("sequence '{}': layer '{}' {}", declared_.name(), op.name(), why)};
  };
  for (std::size_t i = 0; i < op.inputs().size(); ++i) {
    if (static_cast<int>(i) == made.x || op.inputs()[i].optional) continue;
    refuse(
        fmt::format("needs the input '{}' beside x; a sequence binds x alone, so make it a "
                    "graphed_op of its own",
                    op.inputs()[i].name));
  }
  const bool has_state = std::ranges::any_of(op.writes(), &declared_write::restored);
  if (has_state && !made.op.outputs_ignore_state) {
    refuse(
        "updates state that its outputs depend on, so that it cannot be run again for a "
        "backward; say outputs_ignore_state where they do not");
  }
  declared_.include(op, fmt::format("{} {}", parts_.size(), op.name()));
  parts_.push_back(std::move(made));
}

sequence sequence::in_inference() const {
  sequence other{declared_.name() + " in inference"};
  for (const part& each : parts_) {
    if (each.is_only_in_training && !REPRISE_MUTANT(sequence_in_inference_drops_out)) continue;
    const bool differs =
        each.in_inference != nullptr && !REPRISE_MUTANT(sequence_keeps_the_statistics_of_its_batch);
    other.append(differs ? *each.in_inference : each);
  }
  return other;
}

void sequence::forward(forward_scope& run) const {
  if (parts_.empty()) {
    throw usage_error{
        fmt::format("sequence '{}': there is no layer yet; add one", declared_.name())};
  }
  tensor_ref at = ref_of(run[x], run.shape(x));
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const part& each = parts_[i];
    const signature& op = each.op.declared;
    const bool is_last = i + 1 == parts_.size();
    const std::vector<tensor_ref> made =
        run.inner(each.op, only(op.inputs().size(), each.x, at),
                  only(op.outputs().size(), each.y, is_last ? y.slot() : -1));
    at = made[static_cast<std::size_t>(each.y)];
    run.mark({op.name(), static_cast<int>(i)}, at);
  }
}

std::size_t sequence::first_that_trains() const {
  const auto first = std::ranges::find_if(parts_, [](const part& each) {
    return std::ranges::any_of(each.op.declared.uses(),
                               [](const declared_use& use) { return use.trained != nullptr; });
  });
  return static_cast<std::size_t>(first - parts_.begin());
}

void sequence::backward(backward_scope& run) const {
  const bool wants_x = run.wants(x);
  const bool is_whole = wants_x || REPRISE_MUTANT(sequence_goes_through_frozen_layers);
  const std::size_t first = is_whole ? 0 : first_that_trains();
  tensor_ref dy = ref_of(run.grad(y), run.shape(y));
  for (std::size_t i = parts_.size(); i-- > first;) {
    const part& each = parts_[i];
    const signature& op = each.op.declared;
    const bool is_formed = i > first || wants_x;
    const std::vector<tensor_ref> formed =
        run.inner(i, each.op, only(op.outputs().size(), each.y, dy),
                  is_formed ? std::uint64_t{1} << each.x : 0,
                  only(op.inputs().size(), each.x, i == 0 && wants_x ? x.slot() : -1));
    dy = formed[static_cast<std::size_t>(each.x)];
  }
}

}  // namespace reprise::nn
