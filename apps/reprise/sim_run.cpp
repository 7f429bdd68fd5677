#include "apps/reprise/sim_run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"

namespace reprise::app {

namespace {

using scenarios::planted_bug;
using scenarios::scenario;

[[noreturn]] void refuse(std::string_view name) {
  std::vector<std::string_view> names;
  for (const scenario& one : scenarios::all_scenarios()) names.push_back(one.name);
  throw usage_error{
      fmt::format("scenario {:?} is unknown; there are all, {} (see reprise sim --list)", name,
                  fmt::join(names, ", "))};
}

sim_choice choice_of(std::string_view name) {
  const auto slash = name.find('/');
  const scenario* const of = scenarios::find_scenario(name.substr(0, slash));
  if (of == nullptr) refuse(name);
  if (slash == std::string_view::npos) return {of, nullptr};
  const auto bug = std::ranges::find(of->bugs, name.substr(slash + 1), &planted_bug::name);
  if (bug == of->bugs.end()) refuse(name);
  return {of, &*bug};
}

explore_options exploring(const sim_options& options, const scenario& of,
                          std::function<void(std::uint64_t)> progress) {
  explore_options how;
  how.first_seed = options.first();
  how.kernels = scenarios::scenario_kernels();
  how.landmarks.assign(of.landmarks.begin(), of.landmarks.end());
  how.progress = std::move(progress);
  // A seed that was asked for is the one that is shown.
  if (options.seed) how.shortening_seeds = 0;
  return how;
}

sim_row run_choice(const sim_choice& one, const sim_options& options,
                   std::function<void(std::uint64_t)> progress) {
  sim_row row;
  row.name = one.name();
  const double start = now_us();
  explore_options how = exploring(options, *one.of, std::move(progress));
  if (one.bug != nullptr) how.landmarks.clear();
  row.seen = explore(options.count(), one.bug != nullptr ? one.bug->run : one.of->run, how);
  row.us = now_us() - start;
  return row;
}

planted_row run_bug(const scenario& of, const planted_bug& bug, const sim_options& options) {
  planted_row row;
  row.name = sim_choice{&of, &bug}.name();
  row.kinds = bug.kinds;
  explore_options how = exploring(options, of, {});
  how.shortening_seeds = 0;
  how.landmarks.clear();
  exploration seen = explore(options.count(), bug.run, how);
  row.seeds = seen.seeds;
  if (!seen.failures.empty()) row.found = std::move(seen.failures.front());
  return row;
}

}  // namespace

std::string sim_choice::name() const {
  return bug != nullptr ? fmt::format("{}/{}", of->name, bug->name) : std::string{of->name};
}

std::vector<sim_choice> chosen(const sim_options& options) {
  std::vector<sim_choice> what;
  std::set<std::string> seen;
  const auto take = [&](const sim_choice& one) {
    if (seen.insert(one.name()).second) what.push_back(one);
  };
  for (const std::string& name : options.names) {
    if (name != "all") {
      take(choice_of(name));
      continue;
    }
    for (const scenario& one : scenarios::all_scenarios()) take({&one, nullptr});
  }
  return what;
}

bool planted_row::as_planted() const {
  return found && std::ranges::find(kinds, found->kind) != kinds.end();
}

std::string planted_row::text() const {
  if (!found) return fmt::format("not found in {} seeds", seeds);
  const std::string text = fmt::format("found in seed {}: {}", found->seed, found->kind);
  if (as_planted()) return text;
  return fmt::format("{}, which is not {}: {}", text, fmt::join(kinds, " or "), found->what);
}

std::uint64_t sim_report::seeds() const {
  std::uint64_t total = 0;
  for (const sim_row& row : scenarios) total += row.seen.seeds;
  return total;
}

std::uint64_t sim_report::operations() const {
  std::uint64_t total = 0;
  for (const sim_row& row : scenarios) total += row.seen.operations;
  return total;
}

double sim_report::us() const {
  double total = 0;
  for (const sim_row& row : scenarios) total += row.us;
  return total;
}

std::vector<std::string> sim_report::landmarks_missed() const {
  std::set<std::string> names;
  for (const sim_row& row : scenarios) {
    names.insert(row.seen.landmarks_missed.begin(), row.seen.landmarks_missed.end());
  }
  return {names.begin(), names.end()};
}

std::size_t sim_report::failures() const {
  std::size_t total = 0;
  for (const sim_row& row : scenarios) total += row.seen.failures.size();
  for (const planted_row& row : planted) total += row.as_planted() ? 0 : 1;
  return total;
}

std::string sim_report::repeat() const {
  for (const sim_row& row : scenarios) {
    if (row.seen.failures.empty()) continue;
    return fmt::format("reprise sim --scenario {} --seed {}", row.name,
                       row.seen.failures.front().seed);
  }
  for (const planted_row& row : planted) {
    if (row.as_planted()) continue;
    if (row.found) {
      return fmt::format("reprise sim --scenario {} --seed {}", row.name, row.found->seed);
    }
    return fmt::format("reprise sim --scenario {} --seeds {}", row.name, row.seeds);
  }
  return {};
}

std::string sim_report::failure() const {
  for (const sim_row& row : scenarios) {
    if (row.seen.failures.empty()) continue;
    const failed_seed& failed = row.seen.failures.front();
    return fmt::format("{} failed in seed {}: {}: {}", row.name, failed.seed, failed.kind,
                       failed.what);
  }
  for (const planted_row& row : planted) {
    if (!row.as_planted()) return fmt::format("planted bug {} was {}", row.name, row.text());
  }
  return {};
}

sim_report run_sim(const std::vector<sim_choice>& what, const sim_options& options,
                   const sim_progress& tell) {
  sim_report report;
  for (const sim_choice& one : what) {
    const std::string name = one.name();
    tell(name, 0, options.count());
    report.scenarios.push_back(
        run_choice(one, options, [&](std::uint64_t done) { tell(name, done, options.count()); }));
    if (!options.planted || one.bug != nullptr) continue;
    for (const planted_bug& bug : one.of->bugs) {
      planted_row row = run_bug(*one.of, bug, options);
      report.planted.push_back(std::move(row));
    }
  }
  return report;
}

}  // namespace reprise::app
