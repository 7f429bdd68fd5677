#include "tests/train/support.hpp"

#include <bit>
#include <random>
#include <sstream>
#include <utility>

#include "reprise/nn/dropout.hpp"
#include "reprise/nn/gelu.hpp"
#include "reprise/nn/layer_norm.hpp"
#include "reprise/nn/linear.hpp"
#include "reprise/ops/add.hpp"
#include "reprise/platform/platform.hpp"

namespace reprise::test {

namespace {

constexpr float dropped = 0.25F;

device open_counted(const std::string& spec, const std::shared_ptr<call_counts>& calls,
                    const std::shared_ptr<fault_plan>& faults,
                    const std::function<bool(const cell_row&)>& has) {
  std::unique_ptr<device_api> implementation = counting(faulty(bare_device(spec), faults), calls);
  const kernel_registry kernels = builtin_kernels();
  auto table = resolve_kernels(has ? kernels.only(has) : kernels, implementation->traits());
  return device{std::move(implementation), std::move(table)};
}

nn::parameter_specs specs() {
  using model_of::classes;
  using model_of::features;
  using model_of::hidden;
  return nn::joined({nn::linear_parameters("in", hidden, model_of::pixels),
                     nn::norm_parameters("norm", hidden),
                     nn::linear_parameters("out", features, hidden),
                     nn::linear_parameters("class", classes, features),
                     nn::linear_parameters("mask", model_of::mask, features)});
}

constexpr graphed_options unrecorded{.record = false, .tells = false};

}  // namespace

floats numbers(std::size_t count, unsigned seed) {
  std::mt19937 draw{seed};
  floats values(count);
  for (float& value : values) value = static_cast<float>(draw() >> 8) * 0x1p-23F - 1.0F;
  return values;
}

testing::AssertionResult same_bits(const floats& seen, const floats& expected) {
  if (seen.size() != expected.size()) {
    return testing::AssertionFailure() << seen.size() << " elements, and not " << expected.size();
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(seen[i]) == std::bit_cast<std::uint32_t>(expected[i])) {
      continue;
    }
    return testing::AssertionFailure() << "element " << i << " of " << seen.size() << " is "
                                       << seen[i] << ", and not " << expected[i];
  }
  return testing::AssertionSuccess();
}

training_desk::training_desk(const std::string& spec,
                             const std::function<bool(const cell_row&)>& has)
    : opened{open_counted(spec, calls, faults, has)} {}

tensor<float> training_desk::made(const floats& values, const dims& shape) {
  tensor<float> there = make_tensor<float>(memory, shape, work);
  upload(work, values, there.get());
  return there;
}

floats micro_batch::x() const {
  return numbers(static_cast<std::size_t>(rows * model_of::pixels), seed);
}
std::vector<std::int32_t> micro_batch::labels() const {
  std::vector<std::int32_t> all;
  for (unsigned i = 0; i < static_cast<unsigned>(rows); ++i) {
    all.push_back(static_cast<std::int32_t>((i * 3 + seed) % model_of::classes));
  }
  return all;
}
floats micro_batch::masks() const {
  return numbers(static_cast<std::size_t>(rows * model_of::mask), seed + 1000);
}

void expect_same(const made_by& seen, const made_by& expected) {
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_BITS(seen.predictions[i], expected.predictions[i]) << "predictions " << i;
    EXPECT_BITS(seen.terms[i], expected.terms[i]) << "term " << i;
    EXPECT_BITS(seen.gradients[i], expected.gradients[i]) << "gradient of predictions " << i;
    EXPECT_BITS(seen.dfeatures[i], expected.dfeatures[i]) << "gradient of features, head " << i;
  }
  EXPECT_BITS(seen.loss, expected.loss) << "loss";
  EXPECT_BITS(seen.dx, expected.dx) << "gradient of x";
}

weights::weights(training_desk& at, unsigned seed)
    : on{at}, set{at.memory, at.work, specs(), seed} {}

std::vector<bool> weights::have_gradients() const {
  std::vector<bool> all;
  for (std::size_t i = 0; i < set.size(); ++i) all.push_back(set[i].has_grad);
  return all;
}

floats weights::gradients() {
  floats all;
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i].has_grad) continue;
    const floats one = on.host(elements_of<const float>(set[i].grad));
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

void weights::descend() {
  std::vector<nn::stored_parameter> all = set.to_host(on.work);
  for (std::size_t i = 0; i < set.size(); ++i) {
    if (!set[i].has_grad) continue;
    const floats gradient = on.host(elements_of<const float>(set[i].grad));
    for (std::size_t e = 0; e < gradient.size(); ++e) all[i].values[e] -= 0.1F * gradient[e];
  }
  set.from_host(on.work, all);
}

nn::sequence weights::trunk() {
  nn::sequence made{"trunk"};
  made.add(nn::linear{set.at("in.weight"), set.at("in.bias")})
      .add(nn::layer_norm{set.at("norm.gain"), set.at("norm.bias")})
      .add(nn::gelu{})
      .add(nn::dropout{dropped, counter})
      .add(nn::linear{set.at("out.weight"), set.at("out.bias")});
  return made;
}
nn::sequence weights::class_head() {
  nn::sequence made{"class"};
  made.add(nn::linear{set.at("class.weight"), set.at("class.bias")});
  return made;
}
nn::sequence weights::mask_head() {
  nn::sequence made{"mask"};
  made.add(nn::linear{set.at("mask.weight"), set.at("mask.bias")}).add(nn::gelu{});
  return made;
}

void expect_same_weights(weights& seen, weights& expected) {
  EXPECT_EQ(seen.have_gradients(), expected.have_gradients());
  EXPECT_BITS(seen.gradients(), expected.gradients()) << "gradients of parameters";
  EXPECT_EQ(seen.counter.next(), expected.counter.next()) << "numbers drawn";
  EXPECT_BITS(seen.on.host(view<const float>{seen.set.values()}),
              expected.on.host(view<const float>{expected.set.values()}))
      << "parameters";
}

graphed_model::graphed_model(training_desk& at, const part_options& options, bool dx_wanted)
    : on{at},
      wants_x{dx_wanted},
      trunk{own.trunk(), at.budget, options},
      heads{{{"class", own.class_head()}, {"mask", own.mask_head()}}, at.budget, options},
      loss{{{"class", loss_of(nn::softmax_cross_entropy{})},
            {"mask", loss_of(nn::squared_error{}), model_of::mask_weight}},
           at.budget,
           options} {}

graphed_model::under_way graphed_model::begin(const micro_batch& of) {
  under_way now;
  now.of = of;
  now.x = on.made(of.x(), {of.rows, model_of::pixels});
  now.scale = on.made({of.scale}, {1});
  return now;
}

void graphed_model::forward(under_way& now) {
  if (!now.trunk) now.trunk = trunk.forward(on.work, operand{trunk.x(), now.x});
  for (std::size_t i = 0; i < 2; ++i) {
    if (now.heads[i]) continue;
    now.heads[i] = heads.forward(on.work, i, now.trunk->y, now.of.has_target[i]);
  }
}

void graphed_model::compute_loss(under_way& now) {
  if (now.loss || !now.of.has_loss()) return;
  const std::vector<std::int32_t> labels = now.of.labels();
  const tensor<float> masks = on.made(now.of.masks(), {now.of.rows, model_of::mask});
  const auto predicted = [&](std::size_t i) {
    return now.of.has_target[i] ? now.heads[i]->y : tensor<float>{};
  };
  now.loss = loss(
      on.work, {predicted(0), predicted(1)},
      {loss.targets<std::int32_t>(0).from_host(labels), operand{loss.targets<float>(1), masks}},
      now.scale);
}

made_by graphed_model::backward(under_way& now) {
  made_by all;
  for (std::size_t i = 0; i < 2; ++i) all.predictions[i] = on.host(now.heads[i]->y);
  if (!now.of.has_loss()) return all;
  all.loss = on.host(now.loss->loss);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!now.of.has_target[i]) continue;
    all.terms[i] = on.host(now.loss->terms[i]);
    all.gradients[i] = on.host(now.loss->gradients[i]);
    if (now.dfeatures[i]) continue;  // by a call before one that failed
    now.dfeatures[i] = heads.backward(on.work, i, *now.heads[i], now.loss->gradients[i]);
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (now.dfeatures[i]) all.dfeatures[i] = on.host(now.dfeatures[i]);
  }
  tensor<float> dy = now.dfeatures[0] ? now.dfeatures[0] : now.dfeatures[1];
  if (now.dfeatures[0] && now.dfeatures[1]) {
    dy = make_tensor<float>(on.memory, dy.shape(), on.work);
    launch(on.work, add, read<float>{now.dfeatures[0].get()}, read<float>{now.dfeatures[1].get()},
           write<float>{dy.get()});
  }
  if (!now.is_done) now.dx = trunk.backward(on.work, *now.trunk, dy, wants_x);
  now.is_done = true;
  if (now.dx) all.dx = on.host(now.dx);
  return all;
}

made_by graphed_model::run(const micro_batch& of) {
  under_way now = begin(of);
  forward(now);
  compute_loss(now);
  return backward(now);
}

std::array<floats, 2> graphed_model::infer(const micro_batch& of) {
  const tensor<float> x = on.made(of.x(), {of.rows, model_of::pixels});
  const tensor<float> y = trunk.infer(on.work, operand{trunk.x(), x});
  return {on.host(heads.infer(on.work, 0, y)), on.host(heads.infer(on.work, 1, y))};
}

plain_model::plain_model(training_desk& at, const precision& in)
    : on{at},
      in_{in},
      trunk_{at.budget, unrecorded},
      heads_{nn::network{at.budget, unrecorded}, nn::network{at.budget, unrecorded}},
      class_loss_{nn::softmax_cross_entropy{}, at.budget, unrecorded},
      mask_loss_{nn::squared_error{}, at.budget, unrecorded} {
  trunk_.add(nn::linear{own.set.at("in.weight"), own.set.at("in.bias")});
  trunk_.add(nn::layer_norm{own.set.at("norm.gain"), own.set.at("norm.bias")});
  trunk_.add(nn::gelu{});
  trunk_.add(nn::dropout{dropped, own.counter});
  trunk_.add(nn::linear{own.set.at("out.weight"), own.set.at("out.bias")});
  heads_[0].add(nn::linear{own.set.at("class.weight"), own.set.at("class.bias")});
  heads_[1].add(nn::linear{own.set.at("mask.weight"), own.set.at("mask.bias")});
  heads_[1].add(nn::gelu{});
}

plain_model::pending plain_model::forward(const micro_batch& of) {
  const precision_scope in{in_};
  const tensor<float> x = on.made(of.x(), {of.rows, model_of::pixels});
  pending call{of, trunk_.forward(on.work, operand{trunk_.x(), x}), {}};
  for (std::size_t i = 0; i < 2; ++i) {
    call.heads[i] = heads_[i].forward(on.work, operand{heads_[i].x(), call.trunk.y});
  }
  return call;
}

made_by plain_model::backward(const pending& call) {
  const precision_scope in{in_};
  const micro_batch& of = call.of;
  made_by all;
  for (std::size_t i = 0; i < 2; ++i) all.predictions[i] = on.host(call.heads[i].y);
  if (!of.has_loss()) return all;
  std::array<tensor<float>, 2> dfeatures;
  float total = 0;
  bool is_first = true;
  const auto weigh = [&](float weight, float term) {
    const float weighted = weight * term;
    total = is_first ? weighted : total + weighted;
    is_first = false;
    return on.made({weight * of.scale}, {1});
  };
  if (of.has_target[0]) {
    const auto& op = class_loss_.op();
    const std::vector<std::int32_t> labels = of.labels();
    const forward_result made =
        class_loss_.forward(on.work, {{op.logits, call.heads[0].y}, op.targets.from_host(labels)});
    all.terms[0] = on.host(made[op.loss]);
    const tensor<float> dloss = weigh(1.0F, all.terms[0][0]);
    const tensor<float> dlogits =
        class_loss_.backward(on.work, made.ticket, {gradient_of(op.loss, dloss)})[op.logits];
    all.gradients[0] = on.host(dlogits);
    dfeatures[0] = heads_[0].backward(on.work, call.heads[0], dlogits, true);
  }
  if (of.has_target[1]) {
    const auto& op = mask_loss_.op();
    const tensor<float> masks = on.made(of.masks(), {of.rows, model_of::mask});
    const forward_result made =
        mask_loss_.forward(on.work, {{op.x, call.heads[1].y}, {op.target, masks}});
    all.terms[1] = on.host(made[op.loss]);
    const tensor<float> dloss = weigh(model_of::mask_weight, all.terms[1][0]);
    const tensor<float> dmask = mask_loss_.backward(
        on.work, made.ticket, {gradient_of(op.loss, dloss)}, wanted::only(op.x))[op.x];
    all.gradients[1] = on.host(dmask);
    dfeatures[1] = heads_[1].backward(on.work, call.heads[1], dmask, true);
  }
  all.loss = {total};
  for (std::size_t i = 0; i < 2; ++i) {
    if (dfeatures[i]) all.dfeatures[i] = on.host(dfeatures[i]);
  }
  tensor<float> dy = dfeatures[0] ? dfeatures[0] : dfeatures[1];
  if (dfeatures[0] && dfeatures[1]) {
    floats sum = on.host(dfeatures[0]);
    const floats other = on.host(dfeatures[1]);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += other[i];
    dy = on.made(sum, dy.shape());
  }
  all.dx = on.host(trunk_.backward(on.work, call.trunk, dy, true));
  return all;
}

std::array<floats, 2> plain_model::infer(const micro_batch& of) {
  const precision_scope in{in_};
  const tensor<float> x = on.made(of.x(), {of.rows, model_of::pixels});
  const tensor<float> y = trunk_.infer(on.work, operand{trunk_.x(), x});
  return {on.host(heads_[0].infer(on.work, operand{heads_[0].x(), y})),
          on.host(heads_[1].infer(on.work, operand{heads_[1].x(), y}))};
}

int training_case::lines_with(std::string_view part) const {
  return static_cast<int>(
      std::ranges::count_if(log, [&](const std::string& line) { return has(line, part); }));
}

std::string told(const part_counts& counts) {
  std::ostringstream text;
  const auto put = [&](std::string_view name, std::uint64_t count) {
    if (count == 0) return;
    text << (text.tellp() == 0 ? "" : ", ") << name << ' ' << count;
  };
  put("forward_capture", counts.calls.forward_capture);
  put("forward_replay", counts.calls.forward_replay);
  put("backward_capture", counts.calls.backward_capture);
  put("backward_replay", counts.calls.backward_replay);
  put("stale_replay", counts.calls.stale_replay);
  put("inference", counts.calls.inference);
  for (std::size_t i = 0; i < eager_causes; ++i) {
    const std::string cause{name_of(static_cast<eager_cause>(i))};
    put("forward " + cause, counts.calls.eager_forward[i]);
    put("backward " + cause, counts.calls.eager_backward[i]);
  }
  put("captured", counts.captured);
  put("replayed", counts.replayed);
  put("eager", counts.eager);
  put("clears", counts.clears);
  put("retirements", counts.retirements);
  put("low_precision", counts.low_precision);
  put("empty_targets", counts.empty_targets);
  put("replays_inside_windows", counts.replays_inside_windows);
  return text.str();
}

}  // namespace reprise::test
