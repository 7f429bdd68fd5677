#include "reprise/grad/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

constexpr int most_slots = 4096;
constexpr int most_keys = 4096;

// Of the whole text, at least 1.
int count_from(std::string_view text, std::string_view what, int most) {
  int value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
    throw usage_error{fmt::format("{}: '{}' is no number from 1 to {}; give one, as in {}3", what,
                                  text, most, what == "slots" ? "slots:" : "keys=")};
  }
  return value;
}

}  // namespace

slots slots_for(std::span<const scheduled_call> schedule) {
  enum class owed { nothing, backward, done };
  std::map<int, owed> batches;
  int pending = 0;
  int most = 1;
  for (const scheduled_call& call : schedule) {
    owed& now = batches[call.micro_batch];
    if (call.is_backward ? now != owed::backward : now == owed::backward) {
      throw usage_error{fmt::format(
          "schedule: the {} of micro-batch {} comes {}; give each forward one backward behind it",
          call.is_backward ? "backward" : "forward", call.micro_batch,
          !call.is_backward      ? "before the backward that it owes"
          : now == owed::nothing ? "before its forward"
                                 : "twice")};
    }
    now = call.is_backward ? owed::done : owed::backward;
    pending += call.is_backward ? -1 : 1;
    most = std::max(most, pending);
  }
  return {most};
}

slots slots_for_accumulation(int micro_batches) {
  if (micro_batches < 1) {
    throw usage_error{fmt::format(
        "schedule: a window of {} micro-batches holds nothing; give 1 or more", micro_batches)};
  }
  return {micro_batches};
}

slots slots_for_pipeline(int depth, int stage, int micro_batches) {
  if (depth < 1 || stage < 0 || stage >= depth || micro_batches < 1) {
    throw usage_error{
        fmt::format("schedule: there is no stage {} in a pipeline of {} stages with {} "
                    "micro-batches; stages count from 0",
                    stage, depth, micro_batches)};
  }
  // A stage runs one forward for each stage behind it, and one more, before its first backward.
  return {std::min(depth - stage, micro_batches)};
}

std::string text_of(const on_conflict& policy) {
  if (std::holds_alternative<hold>(policy)) return "hold";
  if (std::holds_alternative<recompute>(policy)) return "recompute";
  return fmt::format("slots:{}", std::get<slots>(policy).count);
}

on_conflict conflict_from(std::string_view text) {
  if (text == "hold") return hold{};
  if (text == "recompute") return recompute{};
  constexpr std::string_view prefix = "slots:";
  if (text.starts_with(prefix)) {
    return slots{count_from(text.substr(prefix.size()), "slots", most_slots)};
  }
  throw usage_error{fmt::format(
      "on-conflict: there is no answer '{}'; give hold, recompute or slots:K, as in slots:3",
      text)};
}

std::string text_of(const graphed_options& options) {
  return fmt::format("on-conflict={} gradients={} keys={} record={}", text_of(options.conflict),
                     options.returned == gradients::cloned ? "cloned" : "moved", options.keys,
                     options.record ? "yes" : "no");
}

graphed_options options_from(std::string_view text) {
  graphed_options options;
  const auto one_of = [](std::string_view name, std::string_view value, std::string_view yes,
                         std::string_view no) {
    if (value == yes || value == no) return value == yes;
    throw usage_error{
        fmt::format("options: {}={} is neither {} nor {}; give one of them", name, value, yes, no)};
  };
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1);
    if (name == "on-conflict") {
      options.conflict = conflict_from(value);
    } else if (name == "gradients") {
      options.returned =
          one_of(name, value, "cloned", "moved") ? gradients::cloned : gradients::moved;
    } else if (name == "keys") {
      options.keys = count_from(value, "keys", most_keys);
    } else if (name == "record") {
      options.record = one_of(name, value, "yes", "no");
    } else {
      throw usage_error{fmt::format(
          "options: there is no '{}'; give on-conflict, gradients, keys or record, as in keys=2",
          word)};
    }
  }
  return options;
}

}  // namespace reprise
