#include "reprise/replay/replay_prefix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

struct asked_prefix {
  std::size_t works = 0;
  std::uint64_t replay = 0;  // 0: none, and no end
  std::string step;          // empty: every one
};

// Of this process, read once. What is malformed asks for nothing and is said.
const std::optional<asked_prefix>& asked() {
  static const std::optional<asked_prefix> read = []() -> std::optional<asked_prefix> {
    const char* const said = std::getenv("REPRISE_BISECT");
    if (said == nullptr) return std::nullopt;
    const std::string_view text{said};
    const std::size_t first = text.find(':');
    const std::size_t second = first == text.npos ? first : text.find(':', first + 1);
    if (second == text.npos) {
      report_error(fmt::format(
          "REPRISE_BISECT is '{}' and has to be WORKS:REPLAY:STEP, as `reprise bisect` sets it; "
          "replays run whole",
          text));
      return std::nullopt;
    }
    asked_prefix made;
    const std::string works{text.substr(0, first)};
    made.works = works == "all" ? std::numeric_limits<std::size_t>::max()
                                : std::strtoull(works.c_str(), nullptr, 10);
    const std::string replay{text.substr(first + 1, second - first - 1)};
    made.replay = std::strtoull(replay.c_str(), nullptr, 10);
    made.step = text.substr(second + 1);
    return made;
  }();
  return read;
}

// Fields go by tabs, and so do without them.
template <class... Fields>
void add_to_list(const Fields&... fields) {
  const char* const file = std::getenv("REPRISE_BISECT_LIST");
  if (file == nullptr) return;
  std::string line;
  const auto add = [&](std::string field) {
    for (char& c : field) {
      if (c == '\t' || c == '\n') c = ' ';
    }
    line += (line.empty() ? "" : "\t") + field;
  };
  (add(fmt::format("{}", fields)), ...);
  // In one call: several threads may add theirs.
  std::ofstream{file, std::ios::app} << line + '\n' << std::flush;
}

// What there was of a step in this process, over all of its recordings.
struct step_so_far {
  std::uint64_t recordings = 0, replays = 0;
};

// The number of the next, from 1.
std::uint64_t next_of(const std::string& step, std::uint64_t step_so_far::*what) {
  static std::mutex one;
  static std::map<std::string, step_so_far> all;
  const std::lock_guard lock{one};
  return ++(all[step].*what);
}

// Kernels, copies and fills, each once, as they were captured.
std::vector<node_row> works_of(const graph& captured) {
  std::vector<node_row> works = captured.nodes();
  std::erase_if(works, [](const node_row& one) {
    return !can_be_toggled(one.kind) || one.id == node_id::none;
  });
  std::ranges::stable_sort(works, {}, &node_row::id);
  const auto again = std::ranges::unique(works, {}, &node_row::id);
  works.erase(again.begin(), again.end());
  return works;
}

[[noreturn]] void end_with(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace

replay_prefix::replay_prefix(std::string step, std::uint64_t recording)
    : step_{std::move(step)}, recording_{recording} {}

bool replay_prefix::is_tried() {
  return asked().has_value();
}

std::unique_ptr<replay_prefix> replay_prefix::of(const std::string& step, const graph& captured,
                                                 bool driven) {
  if (!asked()) return nullptr;
  const asked_prefix& how = *asked();
  if (!how.step.empty() && how.step != step) return nullptr;
  const std::uint64_t number = next_of(step, &step_so_far::recordings);
  std::unique_ptr<replay_prefix> made{new replay_prefix{step, number}};
  const std::vector<node_row> works = works_of(captured);
  for (std::size_t i = 0; i < works.size(); ++i) {
    add_to_list("work", number, i, name_of(works[i].kind), works[i].label, step);
    if (i >= how.works && !driven) made->behind_.push_back(works[i].id);
  }
  add_to_list("recording", number, works.size(), driven ? "driven" : "switched", step);
  return made;
}

void replay_prefix::begins(executable_ref launched) {
  replay_ = next_of(step_, &step_so_far::replays);
  add_to_list("replay", replay_, recording_, step_);
  if (replay_ != asked()->replay && !REPRISE_MUTANT(search_cuts_the_replays_before)) return;
  for (const node_id one : behind_) launched.enable(one, false);
}

void replay_prefix::launched(site at) {
  try {
    at.stream.synchronize(at.place);
  } catch (const error& lost) {
    add_to_list("failed", lost.what());
    end_with(failed);
  }
  add_to_list("passed", replay_, step_);
  if (replay_ == asked()->replay) end_with(outlived);
}

}  // namespace reprise
