#include "reprise/platform/explore.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <mutex>
#include <ostream>
#include <set>
#include <span>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/sim/device.hpp"
#include "reprise/sim/journal.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

// A failure is read from its end; the whole of it is in failed_seed.
constexpr std::size_t most_lines_shown = 120;

// What is reported to nobody while a seed runs: a destructor that failed. Log lines say what a run
// did as planned, and thousands of seeds would say it thousands of times.
class reports {
 public:
  reports() : error_handler_{set_error_handler(&note)}, log_sink_{set_log_sink(&drop)} {
    (void)taken();
  }
  ~reports() {
    set_error_handler(error_handler_);
    set_log_sink(std::move(log_sink_));
  }
  reports(const reports&) = delete;
  reports& operator=(const reports&) = delete;

  // The first since the last call; empty when there was none.
  static std::string taken() {
    const std::lock_guard lock{guard};
    return std::exchange(first, {});
  }

 private:
  static void note(std::string_view message) noexcept {
    const std::lock_guard lock{guard};
    if (first.empty()) first = message;
  }
  static void drop(std::string_view) {}

  static inline std::mutex guard;
  static inline std::string first;

  error_handler error_handler_;
  log_sink log_sink_;
};

std::string one_line(std::string_view text) {
  std::string line{text};
  std::ranges::replace(line, '\n', ' ');
  return line;
}

std::optional<failed_seed> failure_of(std::uint64_t seed, const sim::journal& seen,
                                      const std::string& thrown, const std::string& reported) {
  failed_seed failed;
  failed.seed = seed;
  std::size_t lines = seen.trace.size();
  // What an exception took down with it is not what went wrong first.
  const bool thrown_first =
      !thrown.empty() && !seen.findings.empty() && seen.findings.front().unwinding;
  if (!seen.findings.empty() && !thrown_first) {
    const sim::finding& first = seen.findings.front();
    failed.kind = name_of(first.kind);
    failed.what = one_line(first.text);
    lines = std::min(lines, first.trace_lines);
  } else if (!thrown.empty()) {
    failed.kind = "thrown";
    failed.what = one_line(thrown);
  } else if (!reported.empty()) {
    failed.kind = "reported";
    failed.what = one_line(reported);
  } else {
    return std::nullopt;
  }
  failed.trace = fmt::format("{}", fmt::join(std::span{seen.trace}.first(lines), "\n"));
  return failed;
}

// `reports` is installed.
seed_run run_seed(std::uint64_t seed, const std::function<void(device_ref)>& scenario,
                  const explore_options& options) {
  const auto seen = std::make_shared<sim::journal>();
  std::string thrown;
  {
    auto implementation =
        sim::open_adversary({.seed = seed, .watches_memory = options.watches_memory, .into = seen});
    auto table = resolve_kernels(options.kernels, implementation->traits());
    const device opened{std::move(implementation), std::move(table)};
    try {
      scenario(opened);
    } catch (const std::exception& failed) {
      thrown = failed.what();
      if (thrown.empty()) thrown = "an exception without a text";
    } catch (...) {
      thrown = "something that is no exception";
    }
  }  // leaks are found here
  seed_run run;
  run.failure = failure_of(seed, *seen, thrown, reports::taken());
  run.landmarks.assign(seen->landmarks.begin(), seen->landmarks.end());
  run.operations = seen->operations;
  run.trace = std::move(seen->trace);
  return run;
}

// The same kind of failure with the shortest trace that a few more seeds give.
failed_seed shortened(failed_seed found, const std::function<void(device_ref)>& scenario,
                      const explore_options& options) {
  const std::uint64_t first = found.seed;
  for (int i = 1; i <= options.shortening_seeds; ++i) {
    std::optional<failed_seed> other =
        run_seed(first + static_cast<std::uint64_t>(i), scenario, options).failure;
    const bool shorter =
        other && other->kind == found.kind && other->trace.size() < found.trace.size();
    if (shorter) found = *std::move(other);
  }
  return found;
}

std::string end_of(std::string_view trace) {
  std::size_t from = trace.size();
  for (std::size_t lines = 0; lines < most_lines_shown && from != 0 && from != std::string::npos;
       ++lines) {
    from = trace.rfind('\n', from - 1);
  }
  if (from == 0 || from == std::string::npos) return std::string{trace};
  const auto left_out =
      std::count(trace.begin(), trace.begin() + static_cast<long>(from) + 1, '\n');
  return fmt::format("({} earlier lines left out)\n{}", left_out, trace.substr(from + 1));
}

std::string with_seed(std::string_view command, std::uint64_t seed) {
  std::string text{command};
  if (const auto at = text.find("{}"); at != std::string::npos) {
    text.replace(at, 2, std::to_string(seed));
  }
  return text;
}

}  // namespace

seed_run explore_seed(std::uint64_t seed, const std::function<void(device_ref)>& scenario,
                      const explore_options& options) {
  const reports collected;
  return run_seed(seed, scenario, options);
}

exploration explore(std::uint64_t seeds, const std::function<void(device_ref)>& scenario,
                    const explore_options& options) {
  const reports collected;
  exploration seen;
  std::set<std::string, std::less<>> reached;
  while (seen.seeds < seeds && seen.failures.size() < options.most_failures) {
    seed_run run = run_seed(options.first_seed + seen.seeds, scenario, options);
    ++seen.seeds;
    seen.operations += run.operations;
    reached.insert(run.landmarks.begin(), run.landmarks.end());
    if (run.failure) {
      seen.failures.push_back(shortened(*std::move(run.failure), scenario, options));
    }
    if (options.progress) options.progress(seen.seeds);
  }
  std::ranges::copy_if(options.landmarks, std::back_inserter(seen.landmarks_missed),
                       [&](const std::string& name) { return !reached.contains(name); });
  return seen;
}

std::string text_of(const exploration& seen, std::string_view repeat) {
  std::string text;
  for (const failed_seed& failed : seen.failures) {
    text += fmt::format("seed {} failed: {}: {}\n", failed.seed, failed.kind, failed.what);
    if (!failed.trace.empty()) text += end_of(failed.trace) + "\n";
  }
  if (!seen.landmarks_missed.empty()) {
    text += fmt::format("{} seeds never came to: {}\n", seen.seeds,
                        fmt::join(seen.landmarks_missed, ", "));
  }
  if (text.empty()) return fmt::format("{} seeds found nothing\n", seen.seeds);
  if (!repeat.empty() && !seen.failures.empty()) {
    text += fmt::format("{}\n", with_seed(repeat, seen.failures.front().seed));
  }
  return text;
}

std::ostream& operator<<(std::ostream& to, const exploration& seen) {
  return to << text_of(seen);
}

}  // namespace reprise
