#include "reprise/replay/replay_prefix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "reprise/base/error.hpp"

namespace reprise {

namespace {

struct asked_prefix {
  std::size_t works = 0;
  std::uint64_t replays = 0;
  std::string step;  // empty: every one
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
          "REPRISE_BISECT is '{}' and has to be WORKS:REPLAYS:STEP, as `reprise bisect` sets it; "
          "replays run whole",
          text));
      return std::nullopt;
    }
    asked_prefix made;
    const std::string works{text.substr(0, first)};
    made.works = works == "all" ? std::numeric_limits<std::size_t>::max()
                                : std::strtoull(works.c_str(), nullptr, 10);
    const std::string replays{text.substr(first + 1, second - first - 1)};
    made.replays = std::strtoull(replays.c_str(), nullptr, 10);
    made.step = text.substr(second + 1);
    return made;
  }();
  return read;
}

void add_to_list(const std::string& line) {
  const char* const file = std::getenv("REPRISE_BISECT_LIST");
  if (file == nullptr) return;
  std::ofstream{file, std::ios::app} << line << '\n';
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

replay_prefix::replay_prefix(std::string step, std::uint64_t replays)
    : step_{std::move(step)}, most_{replays} {}

std::unique_ptr<replay_prefix> replay_prefix::of(const std::string& step, const graph& captured,
                                                 const executable& made) {
  if (!asked()) return nullptr;
  const asked_prefix& how = *asked();
  if (!how.step.empty() && how.step != step) return nullptr;
  const std::vector<node_row> works = works_of(captured);
  for (std::size_t i = 0; i < works.size(); ++i) {
    add_to_list(
        fmt::format("work\t{}\t{}\t{}\t{}", i, name_of(works[i].kind), works[i].label, step));
    if (i >= how.works) made.enable(works[i].id, false);
  }
  add_to_list(fmt::format("recording\t{}\t{}", works.size(), step));
  return std::unique_ptr<replay_prefix>{new replay_prefix{step, how.replays}};
}

void replay_prefix::begins() {
  ++replays_;
  add_to_list(fmt::format("replay\t{}\t{}", replays_, step_));
}

void replay_prefix::launched(site at) {
  try {
    at.stream.synchronize(at.place);
  } catch (const error& lost) {
    add_to_list(fmt::format("failed\t{}", lost.what()));
    end_with(failed);
  }
  if (replays_ == most_) end_with(outlived);
}

}  // namespace reprise
