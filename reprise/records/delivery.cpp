#include "reprise/records/delivery.hpp"

#include <algorithm>
#include <bit>

#include "reprise/base/mutant.hpp"

namespace reprise::records {

namespace {

struct attempt_result {
  std::size_t taken = 0;
  bool failed = false;
  sink_trouble trouble = sink_trouble::records;
  std::string why{};
};

attempt_result attempt(record_sink& to, std::span<const tap_record> piece) {
  try {
    to.write(piece);
    return {.taken = piece.size()};
  } catch (const sink_error& failed) {
    return {std::min(failed.taken(), piece.size()), true, failed.trouble(), failed.what()};
  } catch (const std::exception& failed) {
    return {0, true, sink_trouble::records, failed.what()};
  } catch (...) {
    return {0, true, sink_trouble::records, "the sink threw what is no std::exception"};
  }
}

// Looks for the records that the sink does not take by halving what it is given, without pauses.
// One bad record among n is found within log2 n failures in a row; more of them in a row mean that
// it is not the records, and what is left is lost.
bool deliver_in_pieces(record_sink& to, std::span<const tap_record> rest,
                       const delivery_events& tell) {
  const int patience = static_cast<int>(std::bit_width(rest.size())) + 1;
  std::size_t most = (rest.size() + 1) / 2;
  int failures = 0;
  while (!rest.empty()) {
    const std::span<const tap_record> piece = rest.first(std::min(most, rest.size()));
    const attempt_result result = attempt(to, piece);
    if (result.taken != 0) {
      tell.delivered(rest.first(result.taken));
      rest = rest.subspan(result.taken);
      failures = 0;
      most *= 2;
    }
    if (!result.failed) continue;
    ++failures;
    if (result.trouble == sink_trouble::for_good || failures > patience) {
      tell.lost(rest, result.why);
      return result.trouble != sink_trouble::for_good;
    }
    if (piece.size() == 1 && result.taken == 0) {
      tell.lost(rest.first(1), result.why);
      rest = rest.subspan(1);
    }
    most = (piece.size() + 1) / 2;
  }
  return true;
}

}  // namespace

std::int64_t pause_us(const retry_rule& rule, int failures) {
  std::int64_t pause = rule.first_pause_us;
  for (int i = 1; i < failures && pause < rule.longest_pause_us; ++i) pause *= 2;
  return std::min(pause, rule.longest_pause_us);
}

bool deliver(record_sink& to, std::span<const tap_record> batch, const retry_rule& rule,
             const delivery_events& tell) {
  std::span<const tap_record> rest = batch;
  int failures = 0;
  while (!rest.empty()) {
    const attempt_result result = attempt(to, rest);
    if (result.taken != 0) {
      tell.delivered(rest.first(result.taken));
      rest = rest.subspan(result.taken);
      failures = 0;
    }
    if (!result.failed || rest.empty()) continue;
    ++failures;
    if (result.trouble == sink_trouble::for_good) {
      tell.lost(rest, result.why);
      return false;
    }
    if (failures < rule.attempts) {
      tell.again(pause_us(rule, failures));
      continue;
    }
    const bool whole_or_not = result.trouble == sink_trouble::away;
    if (whole_or_not || rest.size() == 1 || REPRISE_MUTANT(one_record_loses_its_batch)) {
      tell.lost(rest, result.why);
      return true;
    }
    return deliver_in_pieces(to, rest, tell);
  }
  return true;
}

}  // namespace reprise::records
