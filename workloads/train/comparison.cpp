#include "workloads/train/comparison.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "reprise/base/mutant.hpp"

namespace reprise::train {

namespace {

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

std::string value_difference(std::string_view what, std::uint64_t a, std::uint64_t b) {
  return a == b ? "" : fmt::format("{}: {} is not {}", what, a, b);
}

std::string value_difference(std::string_view what, float a, float b) {
  return difference(what, std::span{&a, 1}, std::span{&b, 1});
}

// The first that is not empty.
std::string first_of(std::initializer_list<std::string> all) {
  for (const std::string& one : all) {
    if (!one.empty()) return one;
  }
  return {};
}

// As parameter_set::values lies; what lies between two parameters counts as the first one's.
std::string difference_by_name(std::string_view kind, const nn::parameter_set& set,
                               const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0) {
    return {};
  }
  for (std::size_t i = 0; i < set.size(); ++i) {
    const std::size_t begin = set.begin(i);
    const std::size_t end = i + 1 < set.size() ? set.begin(i + 1) : set.elements();
    std::string found = difference(fmt::format("{} '{}'", kind, set.name(i)),
                                   std::span{a}.subspan(begin, end - begin),
                                   std::span{b}.subspan(begin, end - begin));
    if (!found.empty()) return found;
  }
  return {};
}

}  // namespace

std::string difference(std::string_view what, std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) {
    return fmt::format("{}: {} elements are not {}", what, a.size(), b.size());
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (same_bits(a[i], b[i])) continue;
    return fmt::format("{}, element {}: {} (0x{:08x}) is not {} (0x{:08x})", what, i, a[i],
                       std::bit_cast<std::uint32_t>(a[i]), b[i],
                       std::bit_cast<std::uint32_t>(b[i]));
  }
  return {};
}

std::string difference(const window_result& a, const window_result& b) {
  if (std::string found = value_difference("micro-batches", a.losses.size(), b.losses.size());
      !found.empty()) {
    return found;
  }
  for (std::size_t i = 0; i < a.losses.size(); ++i) {
    const batch_loss& one = a.losses[i];
    const batch_loss& other = b.losses[i];
    std::string found =
        first_of({value_difference("the loss", one.whole, other.whole),
                  value_difference("the loss of the class", one.of_class, other.of_class),
                  value_difference("the loss of the mask", one.of_mask, other.of_mask)});
    if (!found.empty()) return fmt::format("micro-batch {}: {}", i + 1, found);
  }
  return first_of({value_difference("the norm of the gradients", a.norm, b.norm),
                   value_difference("the loss scale", a.scale, b.scale),
                   value_difference("windows that were applied", std::uint64_t{a.is_applied},
                                    std::uint64_t{b.is_applied})});
}

std::string difference(const training& a, const training& b) {
  const training_state one = a.state();
  const training_state other = b.state();
  const nn::parameter_set& set = a.parameters();
  const auto by_name = [&](std::string_view kind, std::vector<float> training_state::*member) {
    return difference_by_name(kind, set, one.*member, other.*member);
  };
  std::string found = by_name("weight", &training_state::weights);
  if (!found.empty() || REPRISE_MUTANT(train_compares_weights_alone)) return found;
  return first_of(
      {by_name("first moment of", &training_state::first_moments),
       by_name("second moment of", &training_state::second_moments),
       by_name("average of", &training_state::average),
       difference("running statistics", one.statistics, other.statistics),
       value_difference("updates of the optimizer", one.updates, other.updates),
       value_difference("random numbers drawn", one.drawn, other.drawn),
       value_difference("the loss scale", one.scale, other.scale),
       value_difference("windows since it changed", one.good_windows, other.good_windows)});
}

std::string difference(const evaluation& a, const evaluation& b) {
  return first_of(
      {value_difference("the loss of the validation", a.loss, b.loss),
       a.accuracy == b.accuracy ? ""
                                : fmt::format("the accuracy: {} is not {}", a.accuracy, b.accuracy),
       a.mask_accuracy == b.mask_accuracy ? ""
                                          : fmt::format("the accuracy of the masks: {} is not {}",
                                                        a.mask_accuracy, b.mask_accuracy)});
}

std::string difference(std::span<const prediction> a, std::span<const prediction> b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::string found =
        first_of({value_difference("the class", static_cast<std::uint64_t>(a[i].predicted),
                                   static_cast<std::uint64_t>(b[i].predicted)),
                  difference("the mask", a[i].mask, b[i].mask)});
    if (!found.empty()) return fmt::format("prediction {}: {}", i + 1, found);
  }
  return {};
}

}  // namespace reprise::train
