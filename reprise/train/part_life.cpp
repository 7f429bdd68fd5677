#include "reprise/train/part_life.hpp"

#include <fmt/format.h>

#include "reprise/base/mutant.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

// Why a part that could have replayed did not.
std::string why_none(const part_counts& now, const part_counts& then) {
  grad_counts calls = now.calls;
  calls -= then.calls;
  const std::uint64_t steps =
      now.captured + now.replayed + now.eager - then.captured - then.replayed - then.eager;
  if (calls.forwards() + calls.backwards() + steps == 0) return "no call came";
  if (steps != 0) {
    return fmt::format("{} calls: {} captured, 0 replayed, {} eager", steps,
                       now.captured - then.captured, now.eager - then.eager);
  }
  return text_of(calls);
}

}  // namespace

part_life::part_life(std::string_view kind, std::string_view name, const part_options& options)
    : options_{options},
      title_{fmt::format("{} '{}'", kind, name)},
      state_{options.on ? part_state::cleared : part_state::off} {}

void part_life::open(const std::string& why_not, const part_counts& now) {
  if (!options_.on) return;
  at_start_ = now;
  is_open_ = true;
  reason_ = why_not;
  state_ = why_not.empty() ? part_state::ready : part_state::refused;
  if (why_not.empty() || !told_.insert(why_not).second) return;
  log_line(fmt::format("{} records nothing in this run: {}", title_, why_not));
}

void part_life::clear() {
  if (!options_.on) return;
  state_ = part_state::cleared;
  reason_.clear();
}

bool part_life::retire(const std::string& drifted) {
  if (!records() && !REPRISE_MUTANT(retired_part_is_retired_again)) return false;
  state_ = part_state::retired;
  reason_ = drifted;
  ++retirements_;
  log_line(fmt::format(
      "{} is retired for this run, and runs eagerly: {}; put that back, and start the next run",
      title_, drifted));
  return true;
}

void part_life::close(const part_counts& now) {
  if (!is_open_) return;
  is_open_ = false;
  if (now.replays() != at_start_.replays()) return;
  const std::string why = reason_.empty() ? why_none(now, at_start_) : reason_;
  log_line(fmt::format("{} was on and never engaged: {}", title_, why));
}

}  // namespace reprise
