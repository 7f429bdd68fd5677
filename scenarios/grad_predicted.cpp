// What the model says of a whole schedule, without a device.
#include "scenarios/grad_expected.hpp"
#include "scenarios/grad_player.hpp"

namespace reprise::scenarios {

namespace {

void predict(const scheduled& call, expected_values& expected, grad_model& model) {
  switch (call.what) {
    case act::forward:
      model.forward(call);
      expected.forward(call);
      return;
    case act::infer:
      model.infer(call);
      expected.forward(call);
      return;
    case act::again: {
      scheduled by = expected.made_by(call.id);
      by.elsewhere = call.elsewhere;
      model.drop(call.id);
      model.forward(by);
      expected.again(call.id);
      return;
    }
    case act::backward:
      if (!expected.backward(call).is_stale) model.backward(call);
      return;
    case act::drop:
      model.drop(call.id);
      expected.drop(call.id);
      return;
    case act::spoil: return expected.spoil(call.id);
    case act::recall: model.recall(call.id); return;
    case act::update: return expected.update(call.op);
    case act::reset: return model.reset();
    case act::span:
    case act::recompute:
      expected.begin(call);
      model.begin(call);
      return;
    case act::end:
      expected.end();
      model.end();
      return;
  }
}

}  // namespace

std::vector<grad_counts> predicted_counts(const grad_schedule& of) {
  expected_values expected{of};
  grad_model model{of};
  for (const scheduled& call : of.calls) {
    if (expected.makes_sense(call)) predict(call, expected, model);
  }
  std::vector<grad_counts> all;
  for (int i = 0; i < static_cast<int>(of.ops.size()); ++i) all.push_back(model.counts(i));
  return all;
}

}  // namespace reprise::scenarios
