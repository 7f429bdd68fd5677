#include "scenarios/grad_played.hpp"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <utility>

#include "reprise/device/enqueue.hpp"
#include "scenarios/grad_ops.hpp"

namespace reprise::scenarios {

namespace {

template <class Op>
void hold(played_op& made, const world& in, const graphed_options& options, Op op) {
  if constexpr (requires { op.a; }) {
    made.inputs = {op.a, op.b};
  } else {
    made.inputs = {op.x};
  }
  made.outputs = {op.y};
  if constexpr (requires { op.memory; }) made.outputs.push_back(op.memory);
  made.op = std::make_shared<graphed_op<Op>>(std::move(op), in.budget, options);
}

// Where and how they differ; empty when they have the same bits.
std::string difference_of(stream_ref s, view<const float> at, const floats& expected) {
  floats got(at.size());
  copy(s, read<float>{at}, write<float>{view<float>{got.data(), got.size()}});
  s.synchronize();
  if (got.size() != expected.size()) {
    return fmt::format("has {} elements, not {}", got.size(), expected.size());
  }
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &expected[i], sizeof got[i]) == 0) continue;
    return fmt::format("has {} at {}, not {}", got[i], i, expected[i]);
  }
  return {};
}

}  // namespace

void upload(stream_ref s, const floats& values, view<float> to) {
  copy(s, read<float>{view<const float>{values.data(), values.size()}}, write<float>{to});
}

std::unique_ptr<played_op> make_op(const world& in, const scheduled_op& as, int index,
                                   const floats& weight) {
  auto made = std::make_unique<played_op>();
  const std::string name = fmt::format("{} {}", name_of(as.kind), index);
  const std::string work =
      as.work == 0 ? std::string{} : fmt::format("{} work {}", name_of(as.kind), as.work);
  switch (as.kind) {
    case op_kind::scaled:
      made->value = buffer<float>{in.memory, weight.size(), in.s};
      made->gradient = buffer<float>{in.memory, weight.size(), in.s};
      upload(in.s, weight, made->value);
      fill(in.s, write{made->gradient}, std::numeric_limits<float>::quiet_NaN());
      made->weight.value = as_tensor(made->value.all());
      made->weight.grad = as_tensor(made->gradient.all());
      hold(*made, in, as.options, scaled{name, made->weight});
      break;
    case op_kind::noisy: hold(*made, in, as.options, noisy{name, in.counter, work}); break;
    case op_kind::counted:
      made->steps = buffer<std::int32_t>{in.memory, 1, in.s};
      made->running = buffer<float>{in.memory, row, in.s};
      fill(in.s, write{made->steps}, 0);
      fill(in.s, write{made->running}, 0.0F);
      hold(*made, in, as.options, counted{name, made->steps, made->running});
      break;
    case op_kind::rewinding: hold(*made, in, as.options, rewinding{name, work}); break;
    case op_kind::joined: hold(*made, in, as.options, joined{name, work}); break;
    case op_kind::remembering: hold(*made, in, as.options, remembering{name, work}); break;
  }
  return made;
}

void kept_results::keep(stream_ref s, std::size_t call, std::string what, view<const float> from,
                        const floats& expected, const tensor<float>& held) {
  buffer<float> copied{*memory_, from.size(), s};
  copy(s, read<float>{from}, write{copied});
  all_.push_back({call, std::move(what), std::move(copied), held, expected});
}

std::optional<kept_results::difference> kept_results::first_difference(stream_ref s) const {
  for (const kept& one : all_) {
    std::string differs = difference_of(s, one.copied.all(), one.expected);
    if (differs.empty() && one.held) {
      differs = difference_of(s, one.held, one.expected);
      if (!differs.empty()) differs += " when all calls are done";
    }
    if (!differs.empty()) return difference{one.call, fmt::format("{} {}", one.what, differs)};
  }
  return std::nullopt;
}

}  // namespace reprise::scenarios
