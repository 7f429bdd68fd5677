// graphed_loss: a loss of one or several terms and its gradient by their predictions, as one
// recording; a part of a training step (part.hpp).
//
//   graphed_loss loss{{{"class", loss_of(nn::softmax_cross_entropy{})},
//                      {"mask", loss_of(nn::squared_error{}), 0.5F}}, budget, {.on = true}};
//   const auto made = loss(s, {logits, masks},
//                          {loss.targets<std::int32_t>(0).from_host(labels),
//                           operand{loss.targets<float>(1), mask_targets}}, scale);
//   heads.backward(s, 0, call, made.gradients[0]);
//
//   loss = sum over the terms that are there, in their order, of weight * term
//   gradient of term i = d(scale * loss) / d(its predictions)
//
// Each product and sum is rounded once; bits are those of an eager run, however it runs. What a
// term's op keeps between calls may grow (loss_workspace.hpp): then the recording is dropped, and
// the next call records anew. The first replay may fail: that call runs eagerly all the same, and
// says so once. One thread at a time.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "reprise/replay/cache.hpp"
#include "reprise/replay/stream_order.hpp"
#include "reprise/train/certificate.hpp"
#include "reprise/train/loss_op.hpp"
#include "reprise/train/part_life.hpp"

namespace reprise {

class loss_step;  // loss_step.hpp

class graphed_loss {
 public:
  // Of one call, in the order of its stream. With gradients::moved they lie in the memory of the
  // run until the next call of the part, which moves those that are still alive.
  struct result {
    tensor<float> loss;
    std::vector<tensor<float>> terms;      // [1] each, not weighted; empty: left out
    std::vector<tensor<float>> gradients;  // of its predictions' shape; empty: left out
  };

  // The budget outlives it, and so does what the terms refer to. Throws usage_error for an op that
  // needs other inputs than its predictions and targets, trains parameters, or updates state.
  graphed_loss(std::vector<loss_term> terms, byte_budget& budget, const part_options& options = {});
  ~graphed_loss();
  graphed_loss(const graphed_loss&) = delete;
  graphed_loss& operator=(const graphed_loss&) = delete;

  std::size_t size() const { return terms_.size(); }
  // The handle that a term's targets are bound with. Throws usage_error for another type.
  template <element T>
  const input<T>& targets(std::size_t term) const {
    return at(term).op.targets_as<T>();
  }

  // The terms whose predictions are there, and their gradients. `scale`: one element in device
  // memory, what the loss's cotangent is (a loss scale times the share of a window). Throws
  // usage_error when the operands do not fit, and what an op throws in an eager run.
  result operator()(site at, std::span<const tensor<float>> predictions,
                    std::span<const operand> targets, view<const float> scale);
  result operator()(site at, std::initializer_list<tensor<float>> predictions, operands targets,
                    view<const float> scale) {
    return (*this)(at, std::span{predictions.begin(), predictions.size()}, targets, scale);
  }
  // Eagerly, and without gradients: for evaluation.
  result infer(site at, std::span<const tensor<float>> predictions,
               std::span<const operand> targets);
  result infer(site at, std::initializer_list<tensor<float>> predictions, operands targets) {
    return infer(at, std::span{predictions.begin(), predictions.size()}, targets);
  }

  // Tells the observer of each mark of its ops: while there is one, calls run eagerly, and the
  // recording is retired.
  void observe(std::shared_ptr<mark_observer> observer);
  void stop_observing();

  part_state state() const { return life_.state(); }
  // Why it is refused or retired; empty otherwise.
  const std::string& reason() const { return life_.reason(); }
  part_counts counts() const;

 private:
  friend struct part_events;

  // What its runs take on one device; made at the first call there.
  struct on_device;

  const loss_term& at(std::size_t term) const;
  std::vector<std::shared_ptr<mark_observer>> watching() const;
  on_device& here(site at);
  // The steps, of what the terms keep as it lies now; and whether that has grown since.
  void build();
  bool has_grown() const;
  void follow_growth();
  // The rule by which this call runs eagerly; null: it is one of the recording. Drift ends that.
  const char* why_eager(site at);
  void require_outside(site at) const;
  step_result run(site at, bindings given);
  step_result record_or_replay(site at, bindings given);
  step_result run_eagerly(site at, const step& what, bindings given, const char* rule);
  result result_of(site at, const loss_step& of, const step_result& made,
                   std::span<const tensor<float>> predictions);
  tensor<float> handed_out(site at, const step_result& made, int slot);

  std::unique_ptr<replay_cache> let_go();
  void clear(std::source_location place);
  void open(site at);
  void batch_start() {}
  part_counts all_counts() const { return counts(); }

  using shapes = std::vector<std::int64_t>;

  std::vector<loss_term> terms_;
  byte_budget& budget_;
  part_life life_;
  std::unique_ptr<loss_step> step_;       // with gradients
  std::unique_ptr<loss_step> inference_;  // without
  std::vector<std::uint64_t> kept_;       // versions of what the terms keep, when they were built
  std::set<shapes> sized_;                // of eager runs, for which what they keep is large enough
  stream_order order_;
  std::unique_ptr<on_device> here_;
  std::unique_ptr<replay_cache> recorded_;  // null: nothing is recorded
  std::uint64_t key_ = 0;                   // of the one recording
  bool has_replayed_ = false;               // since it was made
  int failures_ = 0;                        // of first replays, in this run
  std::vector<std::shared_ptr<mark_observer>> observers_;
  certificate certified_;
  certificate now_;
  std::vector<std::uint64_t> key_parts_;
  std::map<std::string, std::shared_ptr<const reprise::reason>> reasons_;  // by rule
  bool has_told_ = false;  // that a first replay failed
  part_counts counts_;
};

}  // namespace reprise
