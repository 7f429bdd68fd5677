#include "workloads/memory/training.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "workloads/memory/model.hpp"

namespace reprise::memory {

namespace {

std::vector<float> on_host(stream_ref stream, view<const float> from) {
  std::vector<float> values(from.size());
  copy(stream, read<float>{from}, write<float>{view<float>{values.data(), values.size()}});
  stream.synchronize();
  return values;
}

graphed_options graphed_options_of(const memory_options& options, bool records) {
  return {.conflict = options.conflict, .record = records};
}

}  // namespace

training::training(device_ref device, const memory_options& options, bool records)
    : work_{device},
      memory_{device, "model"},
      budget_{byte_budget::unlimited},
      set_{memory_, work_, model_parameters(options), options.seed},
      embedding_{nn::embedding{set_.at("embedding.table")}, budget_,
                 graphed_options_of(options, records)},
      network_{make_network(set_, budget_, options, graphed_options_of(options, records))},
      loss_{nn::softmax_cross_entropy{}, budget_, graphed_options_of(options, records)},
      optimizer_{set_, memory_, work_, {.rate = options.learning_rate}},
      updates_{device, {.record = records, .budget = &budget_}},
      share_{make_tensor<float>(memory_, {1}, work_)} {
  const float share =
      REPRISE_MUTANT(memory_window_is_a_sum) ? 1.0F : 1.0F / static_cast<float>(options.accumulate);
  fill(work_, write<float>{share_.get()}, share);
}

training::owed training::forward(const byte_batch& batch) {
  owed made;
  made.embedded =
      embedding_.forward(work_, {operand{embedding_.op().tokens.from_host(batch.bytes)}});
  made.between = network_.forward(work_, operand{network_.x(), made.embedded[embedding_.op().y]});
  made.loss = loss_.forward(work_, {operand{loss_.op().logits, made.between.y},
                                    operand{loss_.op().targets.from_host(batch.targets)}});
  return made;
}

void training::backward(const owed& of) {
  const grad_result to_logits =
      loss_.backward(work_, of.loss.ticket, {gradient_of(loss_.op().loss, share_)});
  const tensor<float> to_embedded =
      network_.backward(work_, of.between, to_logits[loss_.op().logits], true);
  embedding_.backward(work_, of.embedded.ticket, {gradient_of(embedding_.op().y, to_embedded)});
}

std::vector<float> training::step(std::span<const byte_batch> window) {
  set_.drop_gradients();
  std::vector<owed> owing;
  std::vector<tensor<float>> losses;
  for (const byte_batch& batch : window) {
    owing.push_back(forward(batch));
    losses.push_back(owing.back().loss[loss_.op().loss]);
  }
  for (const owed& one : owing) backward(one);
  owing.clear();
  optimizer_.update(work_, updates_);

  std::vector<float> values(window.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    copy(work_, read<float>{losses[i].get()}, write<float>{view<float>{&values[i], 1}});
  }
  work_.synchronize();
  return values;
}

training_state training::state() const {
  return {on_host(work_, set_.values()), on_host(work_, optimizer_.first_moments()),
          on_host(work_, optimizer_.second_moments()), optimizer_.updates()};
}

run_counts training::counts() {
  run_counts all;
  all.ops.push_back({"embedding", embedding_.counts()});
  for (std::size_t i = 0; i < network_.size(); ++i) {
    all.ops.push_back({network_.at(i).name(), network_.at(i).counts()});
  }
  all.ops.push_back({"loss", loss_.counts()});
  all.updates = updates_.counts();
  return all;
}

}  // namespace reprise::memory
