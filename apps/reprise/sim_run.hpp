// What `reprise sim` runs, and what came of it: scenarios that must hold under every seed, and
// planted bugs that must be found under one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/platform/explore.hpp"
#include "scenarios/scenario.hpp"

namespace reprise::app {

struct sim_options {
  std::vector<std::string> names;  // of scenarios, of bugs as "scenario/bug"; "all"
  std::uint64_t seeds = 200;
  std::optional<std::uint64_t> seed;  // this one alone
  bool planted = false;               // the bugs of the chosen scenarios as well

  std::uint64_t count() const { return seed ? 1 : seeds; }
  std::uint64_t first() const { return seed.value_or(1); }
};

// One that was chosen: the bug, where there is one, is run in the place of its scenario.
struct sim_choice {
  const scenarios::scenario* of = nullptr;
  const scenarios::planted_bug* bug = nullptr;

  std::string name() const;
};

// In the order they were named, each once. Throws usage_error for a name that there is not.
std::vector<sim_choice> chosen(const sim_options& options);

struct sim_row {
  std::string name;
  exploration seen;
  double us = 0;
};

struct planted_row {
  std::string name;
  std::vector<std::string_view> kinds;  // that tell it, any of them
  std::uint64_t seeds = 0;              // that were tried
  std::optional<failed_seed> found;

  bool as_planted() const;
  std::string text() const;  // "found in seed 3: race", or what is wrong
};

struct sim_report {
  std::vector<sim_row> scenarios;
  std::vector<planted_row> planted;

  std::uint64_t seeds() const;
  std::uint64_t operations() const;
  double us() const;
  std::vector<std::string> landmarks_missed() const;  // each once
  std::size_t failures() const;                       // of scenarios and of planted bugs
  // What to type to see the first failure again; empty when there is none.
  std::string repeat() const;
  std::string failure() const;  // one line; empty when all is well
};

using sim_progress = std::function<void(std::string_view what, std::size_t done, std::size_t all)>;

sim_report run_sim(const std::vector<sim_choice>& what, const sim_options& options,
                   const sim_progress& tell);

}  // namespace reprise::app
