#include "workloads/memory/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/base/clock.hpp"
#include "reprise/telemetry/muted_lines.hpp"
#include "workloads/memory/comparison.hpp"
#include "workloads/memory/sampling.hpp"
#include "workloads/memory/text.hpp"

namespace reprise::memory {

namespace {

float mean_of(const std::vector<float>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0F) / static_cast<float>(losses.size());
}

// One training with its sample: the run, or the plain one beside it.
class memory_run {
 public:
  memory_run(device_ref device, const memory_options& options, bool records)
      : options_{options}, records_{records}, trained_{device, options, records} {}

  std::vector<float> step(const std::vector<byte_batch>& window) {
    const double began = now_us();
    std::vector<float> losses = trained_.step(window);
    if (steps_++ != 0) {
      times_.us += now_us() - began;
      ++times_.steps;
    }
    return losses;
  }

  sample_result sample() {
    sample_result made;
    if (options_.sample == 0) return made;
    sampling with{trained_.runs_on(), trained_.parameters(), options_, records_};
    made.text = with.sample(options_.prompt);
    made.banks = with.banks();
    sampled_ = with.counts();
    return made;
  }

  run_counts counts() {
    run_counts all = trained_.counts();
    all.samples = sampled_;
    return all;
  }

  training& trained() { return trained_; }
  const step_times& times() const { return times_; }

 private:
  const memory_options& options_;
  bool records_;
  training trained_;
  std::uint64_t steps_ = 0;
  step_times times_;
  step_counts sampled_;
};

// An op tells once why it runs eagerly, which is no news where it is planned. How often that was is
// held to the plan all the same.
bool is_planned(std::string_view line) {
  return std::ranges::any_of(
      std::array{eager_cause::suspended, eager_cause::hold}, [&](eager_cause cause) {
        return line.find(fmt::format(" runs eagerly ({}): ", name_of(cause))) !=
               std::string_view::npos;
      });
}

std::vector<byte_batch> window_of(std::string_view text, const memory_options& o,
                                  std::int64_t step) {
  std::vector<byte_batch> window;
  for (std::int64_t i = 0; i < o.accumulate; ++i) {
    window.push_back(draw_batch(text, o.seed, static_cast<std::uint64_t>(step * o.accumulate + i),
                                {o.batch, o.context}));
  }
  return window;
}

}  // namespace

std::string memory_report::failure() const {
  if (compared && !compared->first.empty()) {
    return fmt::format("the run differs from the plain one: {}", compared->first);
  }
  if (const std::string differs = difference(counts, planned); !differs.empty()) {
    return fmt::format("calls did not run as planned: {}", differs);
  }
  if (!plain_differs.empty()) {
    return fmt::format("calls of the plain run did not run as planned: {}", plain_differs);
  }
  return {};
}

memory_report run_memory(device_ref device, const memory_options& options,
                         const step_listener& listen) {
  check(options);
  const std::string text = read_text(options.text, options.context + 1);
  const muted_lines quiet{is_planned};
  memory_report report;
  report.text_bytes = text.size();
  report.planned = planned_counts(options, !options.eager);

  memory_run run{device, options, !options.eager};
  std::unique_ptr<memory_run> plain;
  if (options.verify) {
    plain = std::make_unique<memory_run>(device, options, false);
    report.compared.emplace();
  }
  const nn::parameter_set& set = run.trained().parameters();
  for (std::size_t i = 0; i < set.size(); ++i) report.parameters += set.end(i) - set.begin(i);

  for (std::int64_t step = 0; step < options.steps; ++step) {
    const std::vector<byte_batch> window = window_of(text, options, step);
    const std::vector<float> losses = run.step(window);
    report.loss_last = mean_of(losses);
    if (step == 0) report.loss_first = report.loss_last;
    if (listen) listen(step + 1, report.loss_last, run.trained());
    if (!plain) continue;
    const std::vector<float> expected = plain->step(window);
    if (!report.compared->first.empty()) continue;
    std::string differs = difference("losses", losses, expected);
    if (differs.empty()) differs = difference(run.trained(), plain->trained());
    ++report.compared->steps;
    if (!differs.empty()) report.compared->first = fmt::format("step {}: {}", step + 1, differs);
  }

  sample_result sampled = run.sample();
  if (plain) {
    const sample_result expected = plain->sample();
    if (report.compared->first.empty()) report.compared->first = difference(sampled, expected);
    report.plain_differs = difference(plain->counts(), planned_counts(options, false));
    report.plain_times = plain->times();
  }
  report.sample = std::move(sampled.text);
  report.counts = run.counts();
  report.times = run.times();
  report.weight_bytes = run.trained().weight_bytes();
  report.recording_bytes = run.trained().recording_bytes();
  return report;
}

}  // namespace reprise::memory
