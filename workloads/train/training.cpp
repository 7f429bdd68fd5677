#include "workloads/train/training.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/kernel/launch.hpp"
#include "reprise/ops/add.hpp"

namespace reprise::train {

namespace {

std::vector<float> on_host(stream_ref stream, view<const float> from) {
  std::vector<float> values(from.size());
  copy(stream, read<float>{from}, write<float>{view<float>{values.data(), values.size()}});
  stream.synchronize();
  return values;
}

part_options options_of(const train_options& o, bool is_graphed, bool records) {
  return {.on = is_graphed && records, .in = {matrix_precision::full, o.casts}};
}

// One that is not to move has nowhere to go.
nn::loss_scale_options scale_options_of(const scaling& asked) {
  nn::loss_scale_options o;
  o.scale = asked.scale;
  o.least = asked.dynamic ? std::min(o.least, asked.scale) : asked.scale;
  o.most = asked.dynamic ? std::max(o.most, asked.scale) : asked.scale;
  return o;
}

std::vector<std::uint32_t> numbers_from(std::int64_t first, std::int64_t count) {
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), static_cast<std::uint32_t>(first));
  return numbers;
}

// The average follows closely at first, when the weights have not settled.
float decay_at(const train_options& o, std::uint64_t updates) {
  const auto done = static_cast<float>(updates);
  return std::min(o.ema, (1 + done) / (10 + done));
}

std::int32_t likeliest(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace

float window_result::loss() const {
  float sum = 0;
  for (const batch_loss& one : losses) sum += one.whole;
  return sum / static_cast<float>(losses.size());
}

training::training(device_ref device, const train_options& options, bool records)
    : options_{options},
      work_{device},
      memory_{device, "model"},
      budget_{byte_budget::unlimited},
      set_{memory_, work_, model_parameters(options), options.seed},
      statistics_{make_statistics(memory_, options, work_)},
      draws_{options.seed},
      trunk_{make_trunk(set_, statistics_, draws_, options), budget_,
             options_of(options, options.graphed.network, records)},
      heads_{make_groups(set_), budget_, options_of(options, options.graphed.heads, records)},
      loss_{make_terms(options), budget_, options_of(options, options.graphed.loss, records)},
      run_{{&trunk_, &heads_, &loss_}},
      scaler_{memory_, work_, scale_options_of(options.scale)},
      finish_{set_, memory_, work_},
      optimizer_{set_, memory_, work_, {.rate = options.learning_rate}},
      average_{set_, memory_, work_},
      updates_{device, {.record = records, .budget = &budget_}},
      aside_{memory_, set_.elements(), work_} {}

training::uploaded training::upload(const image_batch& batch) {
  const auto bring = [&]<class T>(const std::vector<T>& from, const dims& shape) {
    tensor<T> to = make_tensor<T>(memory_, shape, work_);
    copy(work_, read<T>{view<const T>{from.data(), from.size()}}, write<T>{to.get()});
    return to;
  };
  uploaded all;
  all.pixels = bring(batch.pixels, {batch.rows, image_pixels});
  all.masks = bring(batch.masks, {batch.rows, image_pixels});
  if (!batch.labels.empty()) all.labels = bring(batch.labels, {batch.rows});
  return all;
}

std::vector<operand> training::targets_of(const uploaded& batch) const {
  std::vector<operand> targets(groups, operand{binding{}});
  if (batch.labels) {
    targets[class_group] = operand{loss_.targets<std::int32_t>(class_group), batch.labels};
  }
  targets[mask_group] = operand{loss_.targets<float>(mask_group), batch.masks};
  return targets;
}

graphed_loss::result training::forward_and_backward(const uploaded& batch,
                                                    view<const float> scale) {
  const bool has_labels = static_cast<bool>(batch.labels);
  run_.batch_start();
  const part_call features = trunk_.forward(work_, operand{trunk_.x(), batch.pixels});
  const part_call of_class = heads_.forward(work_, class_group, features.y, has_labels);
  const part_call of_mask = heads_.forward(work_, mask_group, features.y);

  std::vector<tensor<float>> predictions(groups);
  if (has_labels) predictions[class_group] = of_class.y;
  predictions[mask_group] = of_mask.y;
  graphed_loss::result made = loss_(work_, predictions, targets_of(batch), scale);

  tensor<float> to_features =
      heads_.backward(work_, mask_group, of_mask, made.gradients[mask_group]);
  if (has_labels) {
    const tensor<float> by_class =
        heads_.backward(work_, class_group, of_class, made.gradients[class_group]);
    const tensor<float> sum = make_tensor<float>(memory_, to_features.shape(), work_);
    launch(work_, add, read<float>{by_class.get()}, read<float>{to_features.get()},
           write<float>{sum.get()});
    to_features = sum;
  }
  trunk_.backward(work_, features, to_features);
  return made;
}

window_result training::step(std::span<const image_batch> batches, float rate) {
  set_.drop_gradients();
  window_result done;
  done.scale = scaler_.scale();
  const float share =
      REPRISE_MUTANT(train_window_is_a_sum) ? 1.0F : 1.0F / static_cast<float>(batches.size());
  const view<const float> scale = scaler_.cotangent(work_, share);
  std::vector<graphed_loss::result> made;
  for (const image_batch& batch : batches) {
    made.push_back(forward_and_backward(upload(batch), scale));
  }

  done.losses.resize(made.size());
  const auto bring = [&](const tensor<float>& from, float& to) {
    if (from) copy(work_, read<float>{from.get()}, write<float>{view<float>{&to, 1}});
  };
  for (std::size_t i = 0; i < made.size(); ++i) {
    bring(made[i].loss, done.losses[i].whole);
    bring(made[i].terms[class_group], done.losses[i].of_class);
    bring(made[i].terms[mask_group], done.losses[i].of_mask);
  }

  finish_.run(work_, updates_, done.scale, options_.clip);
  const nn::gradient_facts facts = finish_.read(work_);  // and the losses are there
  done.norm = facts.norm;
  done.is_applied = facts.finite || REPRISE_MUTANT(train_overflow_is_applied);
  if (done.is_applied) {
    optimizer_.set_rate(rate);
    optimizer_.update(work_, updates_);
    average_.update(work_, updates_, decay_at(options_, optimizer_.updates()));
  }
  scaler_.update(facts.finite);
  return done;
}

// Whoever changes values says so; nothing is owed a backward between two windows.
void training::put_weights(view<const float> from) {
  copy(work_, read<float>{from}, write<float>{set_.values()});
  for (std::size_t i = 0; i < set_.size(); ++i) set_[i].version.bump();
}

void training::with_averaged_weights(const std::function<void()>& body) {
  copy(work_, read<float>{set_.values()}, write<float>{aside_.all()});
  if (!REPRISE_MUTANT(train_validates_the_last_weights)) put_weights(average_.values());
  try {
    body();
  } catch (...) {
    put_weights(aside_.all());
    throw;
  }
  if (!REPRISE_MUTANT(train_goes_on_from_the_average)) put_weights(aside_.all());
}

training::said training::say(const uploaded& batch) {
  const tensor<float> features = trunk_.infer(work_, operand{trunk_.x(), batch.pixels});
  return {heads_.infer(work_, class_group, features), heads_.infer(work_, mask_group, features)};
}

evaluation training::evaluate(const image_set& images) {
  evaluation found;
  std::int64_t right = 0;
  std::int64_t right_pixels = 0;
  double loss = 0;
  with_averaged_weights([&] {
    for (std::int64_t first = 0; first < images.count(); first += validated_at_once) {
      const std::int64_t rows = std::min(validated_at_once, images.count() - first);
      const image_batch batch = batch_of(images, numbers_from(first, rows), true);
      const uploaded there = upload(batch);
      const said heads = say(there);
      const std::vector<tensor<float>> predictions{heads.of_class, heads.of_mask};
      const std::vector<float> of_batch =
          on_host(work_, loss_.infer(work_, predictions, targets_of(there)).loss);
      loss += static_cast<double>(of_batch[0]) * static_cast<double>(rows);
      const std::vector<float> logits = on_host(work_, heads.of_class);
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::span row = std::span{logits}.subspan(static_cast<std::size_t>(i * classes),
                                                        static_cast<std::size_t>(classes));
        right += likeliest(row) == batch.labels[static_cast<std::size_t>(i)] ? 1 : 0;
      }
      const std::vector<float> masks = on_host(work_, heads.of_mask);
      for (std::size_t i = 0; i < masks.size(); ++i) {
        right_pixels += (masks[i] > 0) == (batch.masks[i] > 0) ? 1 : 0;
      }
    }
  });
  const auto count = static_cast<double>(images.count());
  found.accuracy = static_cast<double>(right) / count;
  found.mask_accuracy = static_cast<double>(right_pixels) / (count * image_pixels);
  found.loss = static_cast<float>(loss / count);
  return found;
}

std::vector<prediction> training::predict(const image_set& images, std::int64_t count) {
  std::vector<prediction> all;
  const std::vector<std::uint32_t> numbers = numbers_from(0, std::min(count, images.count()));
  const image_batch batch = batch_of(images, numbers, false);
  with_averaged_weights([&] {
    const said heads = say(upload(batch));
    const std::vector<float> logits = on_host(work_, heads.of_class);
    const std::vector<float> masks = on_host(work_, heads.of_mask);
    const auto rows_of = [](const auto& from, std::size_t row, std::size_t width) {
      return std::span{from}.subspan(row * width, width);
    };
    for (const std::size_t i : numbers) {
      const auto pixels = rows_of(images.pixels, i, image_pixels);
      const auto mask = rows_of(masks, i, image_pixels);
      all.push_back({{pixels.begin(), pixels.end()},
                     {mask.begin(), mask.end()},
                     images.labels[i],
                     likeliest(rows_of(logits, i, static_cast<std::size_t>(classes)))});
    }
  });
  return all;
}

training_state training::state() const {
  training_state now{.weights = on_host(work_, set_.values()),
                     .first_moments = on_host(work_, optimizer_.first_moments()),
                     .second_moments = on_host(work_, optimizer_.second_moments()),
                     .average = on_host(work_, average_.values()),
                     .updates = optimizer_.updates(),
                     .statistics = on_host(work_, statistics_.first.all()),
                     .drawn = draws_.next(),
                     .scale = scaler_.scale(),
                     .good_windows = static_cast<std::uint64_t>(scaler_.state().good_updates)};
  std::ranges::copy(on_host(work_, statistics_.second.all()), std::back_inserter(now.statistics));
  return now;
}

run_counts training::counts() const {
  return {{{"trunk", trunk_.counts()},
           {group_names[class_group], heads_.counts(class_group)},
           {group_names[mask_group], heads_.counts(mask_group)},
           {"loss", loss_.counts(), true}},
          updates_.counts()};
}

}  // namespace reprise::train
