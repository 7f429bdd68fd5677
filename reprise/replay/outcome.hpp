// What happened to one run of a step, and why it ran eagerly if it did.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/base/ids.hpp"

namespace reprise {

enum class ran : std::uint8_t { captured, replayed, eager };

constexpr std::string_view name_of(ran how) {
  switch (how) {
    case ran::captured: return "captured";
    case ran::replayed: return "replayed";
    case ran::eager: return "eager";
  }
  return "?";
}

// One fact that did not hold.
struct breach {
  std::string fact;
  std::string expected;
  std::string actual;
  std::string remedy;
};

// Why a step ran eagerly. `rule` is short and the same for the same cause, so that it can be
// counted: "prefill", "fact changed", "capture failed".
struct reason {
  std::string rule;
  std::vector<breach> breaches;  // the deciding one first

  // One line: the rule, then fact, expected, actual and remedy of the first breaches, and how many
  // more there are: a model whose weights moved breaks two facts for each of them.
  std::string text() const;
  static constexpr std::size_t most_breaches_told = 3;
};

std::shared_ptr<const reason> because(std::string rule, std::vector<breach> breaches = {});

struct outcome {
  ran how = ran::eager;
  replay_id replay = replay_id::none;
  std::shared_ptr<const reason> why;  // null unless eager; one object per cause
};

}  // namespace reprise
