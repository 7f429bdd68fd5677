#include "tests/grad/support.hpp"

#include <bit>
#include <sstream>
#include <utility>

#include "scenarios/grad_kernels.hpp"

namespace reprise::test {

namespace {

device open_grad(const std::string& spec, const wrapping& wrap) {
  std::unique_ptr<device_api> implementation = wrap(bare_device(spec));
  auto table = resolve_kernels(grad_test_kernels(), implementation->traits());
  return device{std::move(implementation), std::move(table)};
}

floats product_of(const floats& a, const floats& b) {
  floats made;
  for (std::size_t i = 0; i < a.size(); ++i) made.push_back(a[i] * b[i % b.size()]);
  return made;
}
floats sum_of(const floats& a, const floats& b) {
  floats made;
  for (std::size_t i = 0; i < a.size(); ++i) made.push_back(a[i] + b[i]);
  return made;
}

}  // namespace

floats numbers(int seed, std::size_t count) {
  floats made;
  for (std::size_t i = 0; i < count; ++i) {
    const int step = (seed * 13 + static_cast<int>(i) * 7) % 29 - 14;
    made.push_back(0.37F * static_cast<float>(step) + 0.011F * static_cast<float>(seed));
  }
  return made;
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

std::string told(const grad_counts& counts) {
  std::ostringstream text;
  const auto put = [&](std::string_view name, std::uint64_t count) {
    if (count == 0) return;
    text << (text.tellp() == 0 ? "" : ", ") << name << ' ' << count;
  };
  put("forward_capture", counts.forward_capture);
  put("forward_shared", counts.forward_shared);
  put("forward_replay", counts.forward_replay);
  put("backward_capture", counts.backward_capture);
  put("backward_replay", counts.backward_replay);
  put("stale_replay", counts.stale_replay);
  put("stale_by_pool", counts.stale_by_pool);
  put("inference", counts.inference);
  for (std::size_t i = 0; i < eager_causes; ++i) {
    const std::string cause{name_of(static_cast<eager_cause>(i))};
    put("forward " + cause, counts.eager_forward[i]);
    put("backward " + cause, counts.eager_backward[i]);
  }
  return text.str();
}

grad_desk::grad_desk(const std::string& spec)
    : opened{open_grad(spec, [this](auto bare) { return counting(std::move(bare), calls); })} {}
grad_desk::grad_desk(const std::string& spec, const wrapping& wrap)
    : opened{open_grad(spec, wrap)} {}

tensor<float> grad_desk::made(const floats& values) {
  const auto rows = static_cast<std::int64_t>(values.size()) / row;
  tensor<float> there = make_tensor<float>(memory, {rows, row}, work);
  upload(work, values, there.get());
  return there;
}

int grad_case::lines_with(std::string_view part, std::string_view other) const {
  return static_cast<int>(std::ranges::count_if(
      log, [&](const std::string& line) { return has(line, part) && has(line, other); }));
}

trained_weight::trained_weight(grad_desk& desk, const floats& values)
    : value{desk.memory, values.size(), desk.work},
      gradient{desk.memory, values.size(), desk.work} {
  set(desk, values);
  upload(desk.work, floats(values.size(), 99.0F), gradient.all());  // counts only while has_grad
  at.value = as_tensor(value.all());
  at.grad = as_tensor(gradient.all());
}

void trained_weight::set(grad_desk& desk, const floats& values) {
  const version_change moves{at.version};
  upload(desk.work, values, value.all());
}

std::string name_of(op_kind kind) {
  switch (kind) {
    case op_kind::scaled: return "scaled";
    case op_kind::noisy: return "noisy";
    case op_kind::counted: return "counted";
    case op_kind::rewinding: return "rewinding";
    case op_kind::joined: return "joined";
    case op_kind::remembering: return "remembering";
    case op_kind::twofold: return "twofold";
  }
  return "?";
}

template <class Op>
void subject::hold(Op made, const graphed_options& options) {
  const auto held = std::make_shared<graphed_op<Op>>(std::move(made), at_.budget, options);
  if constexpr (requires { held->op().a; }) {
    inputs = {held->op().a, held->op().b};
  } else {
    inputs = {held->op().x};
  }
  outputs = {held->op().y};
  if constexpr (requires { held->op().memory; }) outputs.push_back(held->op().memory);
  op_ = held;
}

subject::subject(grad_desk& at, op_kind of, const graphed_options& options, const std::string& work,
                 const std::string& called)
    : kind{of}, at_{at} {
  const std::string name = called.empty() ? name_of(of) : called;
  const int trained = of == op_kind::scaled ? 1 : of == op_kind::twofold ? 2 : 0;
  weights.reserve(2);  // ops keep their addresses
  for (int i = 0; i < trained; ++i) {
    weight_values.push_back(numbers(40 + i, row));
    weights.emplace_back(at, weight_values.back());
  }
  expected_gradients_.resize(weights.size());
  switch (of) {
    case op_kind::scaled: hold(scenarios::scaled{name, weights[0].at}, options); break;
    case op_kind::noisy: hold(scenarios::noisy{name, counter, work}, options); break;
    case op_kind::counted:
      steps_ = buffer<std::int32_t>{at.memory, 1, at.work};
      running_ = buffer<float>{at.memory, row, at.work};
      upload(at.work, std::vector<std::int32_t>{0}, steps_.all());
      upload(at.work, expected_running_, running_.all());
      hold(scenarios::counted{name, steps_, running_}, options);
      break;
    case op_kind::rewinding: hold(scenarios::rewinding{name, work}, options); break;
    case op_kind::joined: hold(scenarios::joined{name, work}, options); break;
    case op_kind::remembering: hold(scenarios::remembering{name, work}, options); break;
    case op_kind::twofold: hold(twofold{name, weights[0].at, weights[1].at}, options); break;
  }
}

operands subject::given(call& of) const {
  given_ = {operand{inputs[0], of.x_at}};
  if (!of.b.empty()) given_.emplace_back(inputs[1], of.b_at);
  return operands{given_};
}

// Operands and cotangents go in the order of the desk's stream, and so behind the call.
template <class Call>
auto subject::counted_call(stream_ref on, const Call& does) {
  const calls_since before{*at_.calls};
  struct at_the_end {
    const std::function<void()>& also;
    ~at_the_end() {
      if (also) also();
    }
  };
  auto made = [&] {
    const at_the_end then{after_call};
    if (at_call) at_call();
    return does();
  }();
  for (std::size_t i = 0; i < seam_calls; ++i) made_[i] = before[static_cast<seam_call>(i)];
  if (!(on == stream_ref{at_.work})) order(on, at_.work);
  return made;
}

std::string subject::calls() const {
  std::ostringstream text;
  for (std::size_t i = 0; i < seam_calls; ++i) {
    if (made_[i] == 0) continue;
    text << (text.tellp() == 0 ? "" : ", ") << name_of(static_cast<seam_call>(i)) << ' '
         << made_[i];
  }
  return text.str();
}

subject::call subject::given_values(int values, int rows) {
  const auto count = static_cast<std::size_t>(rows * row);
  call made;
  made.x = numbers(values, count);
  made.x_at = at_.made(made.x);
  if (kind == op_kind::joined && !leaves_b_out) {
    made.b = numbers(values + 5, count);
    made.b_at = at_.made(made.b);
  }
  made.from = {counter.seed(), counter.next()};
  made.in_force = precision_now();
  return made;
}

subject::call subject::forward(site at, int values, int rows) {
  call made = given_values(values, rows);
  const operands all = given(made);
  made.result = counted_call(at.stream, [&] { return op_->forward(at, all); });
  moved_on(made);
  return made;
}

subject::call subject::infer(int values, int rows) {
  call made = given_values(values, rows);
  const operands all = given(made);
  made.result = counted_call(at_.work, [&] { return op_->infer(at_.work, all); });
  moved_on(made);
  return made;
}

void subject::moved_on(const call& of) {
  if (kind == op_kind::noisy) {
    expected_next_ = of.from.next + on_host::draws_of_noisy(of.x.size());
  }
  if (kind == op_kind::counted) on_host::count_step(of.x, expected_steps_, expected_running_);
}

floats subject::cotangent(const call& of, int values, std::size_t slot) const {
  return numbers(values + static_cast<int>(slot) * 3 + 100, of.x.size());
}

grad_result subject::backward(site at, const call& of, int values, const wanted& what) {
  std::vector<tensor<float>> kept;
  std::vector<operand> cotangents;
  for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
    kept.push_back(at_.made(cotangent(of, values, slot)));
    cotangents.push_back(gradient_of(outputs[slot], kept.back()));
  }
  grad_result got = counted_call(
      at.stream, [&] { return op_->backward(at, of.result.ticket, cotangents, what); });
  if (!what.parameters) return got;
  const std::vector<floats> delivered =
      deliveries_of(of, values, {precision_now().products, of.in_force.casts});
  for (std::size_t i = 0; i < delivered.size(); ++i) {
    std::optional<floats>& sum = expected_gradients_[i];
    sum = sum ? sum_of(*sum, delivered[i]) : delivered[i];
  }
  return got;
}

void subject::step(int values, int rows) {
  const call made = forward(values, rows);
  expect_output(made);
  const grad_result got = backward(made, values);
  expect_gradients(made, got, values);
  expect_state();
}

floats subject::output_of(const call& of, std::size_t slot) const {
  switch (kind) {
    case op_kind::scaled:
      return on_host::scaled(of.x, weight_values[0], scenarios::magnification(of.in_force));
    case op_kind::noisy: return on_host::noisy(of.x, of.from);
    case op_kind::counted: return on_host::counted(of.x);
    case op_kind::rewinding: return on_host::rewinding(of.x);
    case op_kind::joined: return on_host::joined(of.x, of.b);
    case op_kind::remembering: {
      const auto both = on_host::remembering(of.x);
      return slot == 0 ? both.first : both.second;
    }
    case op_kind::twofold:
      return sum_of(product_of(of.x, weight_values[0]),
                    product_of(product_of(of.x, of.x), weight_values[1]));
  }
  return {};
}

std::vector<floats> subject::gradients_of(const call& of, int values,
                                          const precision& in_force) const {
  const floats dy = cotangent(of, values, 0);
  switch (kind) {
    case op_kind::scaled:
      return {on_host::scaled_dx(dy, weight_values[0], scenarios::magnification(in_force))};
    case op_kind::noisy: return {on_host::noisy(dy, of.from)};
    case op_kind::counted: return {on_host::counted_dx(dy, of.x)};
    case op_kind::rewinding: return {on_host::rewinding_dx(dy, of.x)};
    case op_kind::joined:
      return {on_host::joined_da(dy, of.b), of.b.empty() ? floats{} : on_host::joined_db(dy, of.x)};
    case op_kind::remembering: return {on_host::remembering_dx(dy, cotangent(of, values, 1), of.x)};
    case op_kind::twofold: {
      const floats second = product_of(product_of(dy, weight_values[1]), of.x);
      return {sum_of(sum_of(product_of(dy, weight_values[0]), second), second)};
    }
  }
  return {};
}

std::vector<floats> subject::deliveries_of(const call& of, int values,
                                           const precision& in_force) const {
  const floats dy = cotangent(of, values, 0);
  if (kind == op_kind::scaled) {
    return {on_host::scaled_dw(dy, of.x, row, scenarios::magnification(in_force))};
  }
  if (kind == op_kind::twofold) {
    return {on_host::scaled_dw(dy, of.x, row, 1.0F),
            on_host::scaled_dw(dy, product_of(of.x, of.x), row, 1.0F)};
  }
  return {};
}

void subject::expect_output(const call& of) const {
  EXPECT_BITS(at_.values_of(of.result[outputs[0]].get()), output_of(of, 0))
      << "output of " << op_->name();
}

void subject::expect_gradients(const call& of, const grad_result& got, int values,
                               const wanted& what) const {
  const std::vector<floats> expected =
      gradients_of(of, values, {precision_now().products, of.in_force.casts});
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if ((what.inputs >> i & 1) == 0 || expected[i].empty()) continue;
    EXPECT_BITS(at_.values_of(got[inputs[i]].get()), expected[i])
        << "gradient of input " << i << " of " << op_->name();
  }
}

void subject::expect_state() const {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(weights[i].at.has_grad, expected_gradients_[i].has_value()) << "parameter " << i;
    if (!expected_gradients_[i]) continue;
    EXPECT_BITS(at_.values_of(weights[i].gradient.all()), *expected_gradients_[i])
        << "gradient of parameter " << i << " of " << op_->name();
  }
  if (kind == op_kind::noisy) {
    EXPECT_EQ(counter.next(), expected_next_);
  }
  if (kind == op_kind::counted) {
    EXPECT_EQ(at_.value_of(steps_.all()), expected_steps_);
    EXPECT_BITS(at_.values_of(running_.all()), expected_running_);
  }
}

void subject::expect_once_or_not_at_all(int values, int rows) {
  call lost;
  lost.x = numbers(values, static_cast<std::size_t>(rows * row));
  lost.from = {counter.seed(), expected_next_};
  if (kind == op_kind::counted && at_.value_of(steps_.all()) != expected_steps_) moved_on(lost);
  if (kind == op_kind::noisy && counter.next() != expected_next_) moved_on(lost);
  expect_state();
}

void subject::expect_each_once_or_not_at_all(const call& of, int values) const {
  const std::vector<floats> delivered =
      deliveries_of(of, values, {precision_now().products, of.in_force.casts});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::optional<floats>& before = expected_gradients_[i];
    if (!before && !weights[i].at.has_grad) continue;
    const floats now = at_.values_of(weights[i].gradient.all());
    const floats once = before ? sum_of(*before, delivered[i]) : delivered[i];
    EXPECT_TRUE(same_bits(now, once) || (before && same_bits(now, *before))) << "parameter " << i;
  }
}

void subject::drop_gradients() {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i].at.has_grad = false;
    expected_gradients_[i].reset();
  }
}

void subject::zero_gradients() {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    upload(at_.work, floats(row, 0.0F), weights[i].gradient.all());
    weights[i].at.has_grad = true;
    expected_gradients_[i] = floats(row, 0.0F);
  }
}

void subject::descend(float rate) {
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const version_change moves{weights[i].at.version};
    launch(at_.work, scenarios::descend, read(weights[i].gradient), rate, inout(weights[i].value));
    on_host::descend(weight_values[i], expected_gradients_[i].value(), rate);
  }
}

}  // namespace reprise::test
