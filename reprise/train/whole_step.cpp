#include "reprise/train/whole_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/gradient_rule.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/grad/inline_pass.hpp"

namespace reprise {

namespace {

// The place of a parameter in its set; size(): it is of another.
std::size_t place_in(const nn::parameter_set& set, const parameter& one) {
  std::size_t i = 0;
  while (i < set.size() && &set[i] != &one) ++i;
  return i;
}

std::vector<parameter*> trained_by(const nn::sequence& module, const nn::parameter_set& set) {
  std::vector<parameter*> trained;
  for (const declared_use& use : module.describe().uses()) {
    if (use.trained == nullptr) continue;
    if (place_in(set, *use.trained) == set.size()) {
      throw usage_error{fmt::format(
          "training step: '{}' of module '{}' is not of the set that the update is over; give the "
          "optimizer of its parameters",
          use.name, module.describe().name())};
    }
    trained.push_back(use.trained);
  }
  if (!trained.empty()) return trained;
  throw usage_error{
      fmt::format("training step: module '{}' trains nothing; give its parameters gradient buffers",
                  module.describe().name())};
}

// Neighbours in the set as one stretch, in its order.
std::vector<nn::updated_span> spans_of(const nn::parameter_set& set,
                                       const std::vector<parameter*>& trained) {
  std::vector<nn::updated_span> spans;
  bool goes_on = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool is_trained = std::ranges::find(trained, &set[i]) != trained.end();
    if (is_trained && !goes_on) spans.push_back({set.begin(i), 0});
    if (is_trained) spans.back().end = set.end(i);
    goes_on = is_trained;
  }
  return spans;
}

// What a step changes is of another version from its begin on, and again at its end, however that
// is reached.
class step_change {
 public:
  explicit step_change(const std::vector<parameter*>& trained) : trained_{trained} { bump(); }
  ~step_change() { bump(); }
  step_change(const step_change&) = delete;
  step_change& operator=(const step_change&) = delete;

 private:
  void bump() noexcept {
    if (REPRISE_MUTANT(whole_step_moves_no_version)) return;
    for (parameter* one : trained_) one->version.bump();
  }

  const std::vector<parameter*>& trained_;
};

std::vector<tensor_ref> only(std::size_t count, int slot, const tensor_ref& tensor) {
  std::vector<tensor_ref> all(count);
  all[static_cast<std::size_t>(slot)] = tensor;
  return all;
}

}  // namespace

whole_step::whole_step(nn::sequence module, loss_op loss, nn::update_part update, pool& memory,
                       stream_ref stream)
    : module_{std::move(module)},
      loss_op_{std::move(loss)},
      update_{std::move(update)},
      erased_module_{erase(std::make_shared<const nn::sequence>(module_))},
      trained_{trained_by(module_, *update_.set)},
      spans_{spans_of(*update_.set, trained_)},
      rule_{memory, 1, stream},
      one_{memory, 1, stream},
      words_(update_.word_count),
      targets_{declared_.add_input({"targets", loss_op_.targets().type, loss_op_.targets().pattern,
                                    input_mode::direct, false})},
      hyper_parameters_{
          declared_.in<float>("hyper-parameters", {static_cast<std::int64_t>(update_.word_count)})},
      step_{declare(), [this](step_scope& run) { body(run); }} {
  fill(stream, write{rule_}, static_cast<std::int32_t>(gradient_rule::write));
  fill(stream, write{one_}, 1.0F);
}

signature whole_step::declare() {
  include_op(declared_, erased_module_, "module");
  include_op(declared_, loss_op_.op, "loss");
  key_by_precision(declared_);
  declared_.state("weights", as_tensor(update_.set->values()));
  for (std::size_t i = 0; i < update_.state.size(); ++i) {
    declared_.state(fmt::format("state {} of the update", i), update_.state[i]);
  }
  return declared_;
}

void whole_step::body(step_scope& run) const {
  const std::size_t losses = loss_op_.op.declared.outputs().size();
  const std::size_t operands = loss_op_.op.declared.inputs().size();
  inline_pass ops{run, declared_, [this](const parameter& trained) {
                    return delivery{elements_of<float>(trained.grad), rule_.all()};
                  }};
  const tensor_ref y = ops.forward(erased_module_, {ops.given(x_)}).front();
  std::vector<tensor_ref> compared = only(operands, loss_op_.predictions_slot, y);
  compared[static_cast<std::size_t>(loss_op_.targets_slot)] = ops.given(targets_, declared_.id());
  std::vector<int> into(losses, -1);
  into[static_cast<std::size_t>(loss_op_.loss_slot)] = loss_.slot();
  ops.forward(loss_op_.op, compared, into);

  const std::vector<tensor_ref> dy =
      ops.backward(1, loss_op_.op, only(losses, loss_op_.loss_slot, as_tensor(one_.all())),
                   std::uint64_t{1} << loss_op_.predictions_slot);
  ops.backward(0, erased_module_, {dy[static_cast<std::size_t>(loss_op_.predictions_slot)]}, 0);
  if (!REPRISE_MUTANT(update_does_not_wait_for_gradients)) run.join_aside();
  update_.enqueue(run, run[hyper_parameters_], spans_);
}

binding whole_step::bind(int slot, const tensor_ref& from, bool on_host) const {
  return {declared_.id(), slot, from, on_host, false};
}

step_result whole_step::run(site at, replay_cache& through, const step_batch& batch) {
  update_.words(words_);
  const std::array<binding, 3> given{bind(x_.slot(), batch.x, batch.on_host),
                                     bind(targets_, batch.targets, batch.on_host),
                                     hyper_parameters_.from_host(words_)};
  const step_change changes{trained_};
  step_result ran = through.run(at, step_, std::span<const binding>{given});
  for (parameter* one : trained_) one->has_grad = true;
  update_.count();
  return ran;
}

}  // namespace reprise
