#include "reprise/grad/op_parts.hpp"

#include <fmt/format.h>

#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/grad/bring.hpp"
#include "reprise/kernel/launch.hpp"

namespace reprise {

namespace {

std::string own_work() {
  static std::atomic<std::uint64_t> last{0};
  return fmt::format("graphed op {}", ++last);
}

bool can_have_gradient(dtype type) {
  return type == dtype::f32 || type == dtype::bf16 || type == dtype::f64;
}

}  // namespace

op_parts::op_parts(erased_op of, philox_counter& draws)
    : op{std::move(of)},
      forward{op.declared.variant(op.declared.name())},
      recorded{op.declared.variant(op.declared.name())} {
  const signature& declared = op.declared;
  // Parameters are read at addresses that a recording keeps.
  shares = !declared.work().empty() && declared.uses().empty();
  work = shares ? declared.work() : own_work();
  if (declared.inputs().size() + declared.outputs().size() > 64) {
    throw usage_error{fmt::format(
        "op '{}': it has {} inputs and {} outputs, and a backward takes 64 of both; gather some "
        "into one tensor",
        declared.name(), declared.inputs().size(), declared.outputs().size())};
  }
  for (const declared_use& use : declared.uses()) {
    if (use.trained == nullptr) continue;
    const tensor_ref& grad = use.weight->grad;
    if (grad.data == nullptr || grad.type != dtype::f32 ||
        grad.shape.count() != use.weight->value.shape.count()) {
      throw usage_error{
          fmt::format("op '{}': parameter '{}' is trained and has no gradient buffer of its own "
                      "size; give parameter::grad as many f32 elements as the value has",
                      declared.name(), use.name)};
    }
    trained.push_back(use.trained);
  }
  if (trained.size() > most_trained) {
    throw usage_error{fmt::format("op '{}': it trains {} parameters, and {} are the most; split it",
                                  declared.name(), trained.size(), most_trained)};
  }
  // A backward's inputs: cotangents, the rules of parameters, and the places of gradients.
  if (declared.outputs().size() + (trained.empty() ? 0 : 1) + 1 > 64) {
    throw usage_error{fmt::format(
        "op '{}': it has {} outputs, and a backward takes 64 words of them and of what it forms; "
        "gather some into one tensor",
        declared.name(), declared.outputs().size())};
  }
  for (std::size_t i = 0; i < declared.inputs().size(); ++i) {
    if (can_have_gradient(declared.inputs()[i].type)) differentiable |= std::uint64_t{1} << i;
  }
  for (const declared_write& write : declared.writes()) {
    if (!write.restored || op.outputs_ignore_state) continue;
    throw usage_error{
        fmt::format("op '{}': what it makes may depend on the state '{}' that it updates, so its "
                    "forward cannot be run again for a backward; say outputs_ignore_state where "
                    "it does not, or make the state an input and an output",
                    declared.name(), write.name)};
  }
  forward.take_inputs_direct();
  forward.same_work_as(work + " forward");
  key_by_precision(forward);
  if (declared.random() != nullptr) forward.random(draws);
  recorded = forward.variant(declared.name());
  recorded.same_work_as(work + " forward");
  if (!declared.outputs().empty()) {
    places = recorded.add_input({"places of outputs", dtype::u64,
                                 dims{static_cast<std::int64_t>(declared.outputs().size())},
                                 input_mode::staged, false});
  }
}

void op_parts::run_forward(step_scope& run, saved_tensors& saves, const precision& in_force) const {
  const run_inputs& inputs = run.inputs();
  saves = {};
  saves.given = inputs.given;
  saves.random_words = inputs.random_words;
  saves.outputs.resize(op.declared.outputs().size());
  for (std::size_t i = 0; i < op.declared.inputs().size(); ++i) {
    const bool is_direct = (inputs.direct >> i & 1) != 0;
    const bool stays = op.declared.inputs()[i].mode == input_mode::direct;
    const tensor_ref& at = inputs.by_slot[i];
    saves.inputs.push_back(is_direct && !stays ? bring_input(run, at, true) : at);
    if (is_direct && stays) saves.direct |= std::uint64_t{1} << i;
  }
  forward_scope scope{run, op.declared, saves, in_force};
  op.forward(scope);
  saves.drawn = run.drawn();
}

void op_parts::hand_out_outputs(step_scope& run, const saved_tensors& saves) const {
  if (places < 0) return;
  const tensor_ref& words = run.inputs().by_slot[static_cast<std::size_t>(places)];
  for (std::size_t slot = 0; slot < saves.outputs.size(); ++slot) {
    if (op.declared.outputs()[slot].is_state) continue;
    hand_out(run, saves.outputs[slot], words.data + slot * sizeof(std::uint64_t));
  }
}

void hand_out(step_scope& run, const tensor_ref& made, const std::byte* word) {
  const std::size_t bytes = made.bytes();
  if (bytes == 0) return;
  const view<const std::uint8_t> from{reinterpret_cast<const std::uint8_t*>(made.data), bytes};
  launch(run, bring, read<std::uint8_t>{from},
         write<std::uint8_t>{view<std::uint8_t>::through(word, bytes)});
}

void bind_places(const signature& of, int slot, std::vector<std::uint64_t>& words,
                 std::vector<binding>& given) {
  if (slot < 0) return;
  const dims shape{static_cast<std::int64_t>(words.size())};
  auto* const at = reinterpret_cast<std::byte*>(words.data());
  given.push_back({of.id(), slot, {at, dtype::u64, shape, contiguous_strides(shape)}, true, false});
}

tensor_ref bring_input(step_scope& run, const tensor_ref& at, bool is_direct) {
  const tensor_ref here = run.keep(at.type, at.shape);
  const std::size_t bytes = here.bytes();
  const auto as_bytes = [&](std::byte* data) {
    return view<std::uint8_t>{reinterpret_cast<std::uint8_t*>(data), bytes};
  };
  const view<const std::uint8_t> from =
      is_direct ? view<const std::uint8_t>::through(at.data, bytes) : as_bytes(at.data);
  launch(run, bring, read<std::uint8_t>{from}, write<std::uint8_t>{as_bytes(here.data)});
  return here;
}

binding bind_input(const signature& of, int slot, const tensor_ref& ref) {
  return {of.id(), slot, ref, false, false};
}

}  // namespace reprise
