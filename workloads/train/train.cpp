#include "workloads/train/train.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"
#include "reprise/telemetry/muted_lines.hpp"
#include "workloads/train/comparison.hpp"

namespace reprise::train {

namespace {

// One training: the run, or the plain one beside it.
class train_run {
 public:
  train_run(device_ref device, const train_options& options, bool records)
      : trained_{device, options, records} {
    trained_.begin();
  }

  window_result step(std::span<const image_batch> batches, float rate) {
    const double began = now_us();
    window_result done = trained_.step(batches, rate);
    if (!applied_.empty()) {
      times_.us += now_us() - began;
      ++times_.windows;
    }
    applied_.push_back(done.is_applied);
    return done;
  }
  // Its recordings go; what it counted stays.
  void end() { trained_.end(); }

  training& trained() { return trained_; }
  const std::vector<bool>& applied() const { return applied_; }
  const window_times& times() const { return times_; }

 private:
  training trained_;
  std::vector<bool> applied_;
  window_times times_;
};

// A part tells once why it runs eagerly, which is no news where it is planned. How often that was
// is held to the plan all the same.
bool is_planned(std::string_view line) {
  return std::ranges::any_of(
      std::array{eager_cause::suspended, eager_cause::key}, [&](eager_cause cause) {
        return line.find(fmt::format(" runs eagerly ({}): ", name_of(cause))) !=
               std::string_view::npos;
      });
}

std::vector<image_batch> batches_of(const image_set& images, std::span<const std::uint32_t> order,
                                    const window& asked) {
  std::vector<image_batch> batches;
  for (const micro_batch& one : asked) {
    batches.push_back(batch_of(
        images,
        order.subspan(static_cast<std::size_t>(one.first), static_cast<std::size_t>(one.rows)),
        one.has_labels));
  }
  return batches;
}

std::uint64_t skipped(const std::vector<bool>& applied, std::size_t first) {
  return static_cast<std::uint64_t>(
      std::count(applied.begin() + static_cast<std::ptrdiff_t>(first), applied.end(), false));
}

// A run and, where it is asked for, the plain one beside it.
class both_runs {
 public:
  both_runs(device_ref device, const train_options& options, const image_sets& images,
            std::span<const epoch> epochs, const window_listener& listen)
      : options_{options},
        images_{images},
        epochs_{epochs},
        listen_{listen},
        run_{device, options, options.graphed.any()} {
    for (const epoch& one : epochs) windows_ += one.size();
    if (!options.verify) return;
    plain_ = std::make_unique<train_run>(device, options, false);
    report_.compared.emplace();
  }

  void train(std::size_t number) {
    const epoch& windows = epochs_[number];
    const std::vector<std::uint32_t> order = order_of(images_.train.count(), options_.seed, number);
    const std::size_t before = run_.applied().size();
    epoch_result& result = report_.epochs.emplace_back();
    us_ = 0;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const double began = now_us();
      const std::vector<image_batch> batches = batches_of(images_.train, order, windows[i]);
      us_ += now_us() - began;
      const float loss =
          step(batches, {static_cast<std::int64_t>(number) + 1, static_cast<std::int64_t>(i) + 1,
                         static_cast<std::int64_t>(windows.size()), 0});
      result.loss += loss / static_cast<float>(windows.size());
    }
    result.seconds = us_ * 1e-6;
    result.overflows = skipped(run_.applied(), before);
    result.validated = run_.trained().evaluate(images_.test);
    if (!plain_) return;
    const evaluation expected = plain_->trained().evaluate(images_.test);
    note(fmt::format("epoch {}", number + 1), difference(result.validated, expected));
    ++report_.compared->epochs;
  }

  train_report end() {
    training& trained = run_.trained();
    report_.shown = trained.predict(images_.test, shown_images);
    report_.images = images_.train.count();
    report_.validated = images_.test.count();
    const nn::parameter_set& set = trained.parameters();
    for (std::size_t i = 0; i < set.size(); ++i) report_.parameters += set.end(i) - set.begin(i);
    report_.scale = trained.state().scale;
    report_.weight_bytes = trained.weight_bytes();
    report_.recording_bytes = trained.recording_bytes();
    report_.times = run_.times();
    run_.end();
    report_.counts = trained.counts();
    report_.planned = planned(run_, options_.graphed.any());
    if (plain_) end_plain();
    return std::move(report_);
  }

 private:
  float step(const std::vector<image_batch>& batches, train_progress done) {
    const float rate = rate_at(options_, run_.applied().size(), windows_);
    const double began = now_us();
    const window_result made = run_.step(batches, rate);
    us_ += now_us() - began;
    done.loss = made.loss();
    if (listen_) listen_(done, run_.trained());
    if (!plain_) return done.loss;
    const window_result expected = plain_->step(batches, rate);
    if (!report_.compared->first.empty()) return done.loss;
    std::string differs = difference(made, expected);
    if (differs.empty()) differs = difference(run_.trained(), plain_->trained());
    ++report_.compared->windows;
    note(fmt::format("epoch {}, window {}", done.epoch, done.window), differs);
    return done.loss;
  }

  void end_plain() {
    note("at the end",
         difference(report_.shown, plain_->trained().predict(images_.test, shown_images)));
    plain_->end();
    report_.plain_times = plain_->times();
    report_.plain_differs = difference(plain_->trained().counts(), planned(*plain_, false));
  }

  run_counts planned(const train_run& of, bool records) const {
    return planned_counts(options_, {epochs_, images_.test.count(), of.applied(), records});
  }

  void note(const std::string& where, const std::string& differs) {
    if (differs.empty() || !report_.compared->first.empty()) return;
    report_.compared->first = fmt::format("{}: {}", where, differs);
  }

  const train_options& options_;
  const image_sets& images_;
  std::span<const epoch> epochs_;
  const window_listener& listen_;
  std::size_t windows_ = 0;  // of all epochs
  double us_ = 0;            // of the epoch at hand, without the plain run's
  train_report report_;
  train_run run_;
  std::unique_ptr<train_run> plain_;
};

}  // namespace

std::string train_report::failure() const {
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

train_report run_train(device_ref device, const train_options& options, const image_sets& images,
                       std::span<const epoch> epochs, const window_listener& listen) {
  check(options);
  const muted_lines quiet{is_planned};
  both_runs runs{device, options, images, epochs, listen};
  for (std::size_t i = 0; i < epochs.size(); ++i) runs.train(i);
  return runs.end();
}

train_report run_train(device_ref device, const train_options& options,
                       const window_listener& listen) {
  check(options);
  const image_sets images{read_images(options.data, "train", options.subset),
                          read_images(options.data, "t10k")};
  if (images.train.count() < 2) {
    throw usage_error{fmt::format(
        "--data {}: it has one image to train on, and batch norm needs two at least; give more",
        formats::quoted_name(options.data.string()))};
  }
  const std::vector<epoch> epochs(static_cast<std::size_t>(options.epochs),
                                  epoch_of(options, images.train.count()));
  return run_train(device, options, images, epochs, listen);
}

}  // namespace reprise::train
