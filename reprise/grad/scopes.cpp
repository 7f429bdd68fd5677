#include "reprise/grad/scopes.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/grad/op_parts.hpp"

namespace reprise {

namespace {

void require_own(const signature& declared, signature_id of, std::string_view does) {
  if (of == declared.id()) return;
  throw usage_error{
      fmt::format("op '{}': the body {} another op's tensor; use the handles of this signature",
                  declared.name(), does)};
}

[[noreturn]] void refuse_left_out(const signature& declared, int slot) {
  throw usage_error{
      fmt::format("op '{}': the body reads input '{}', which this call left out; ask given() first",
                  declared.name(), declared.inputs()[static_cast<std::size_t>(slot)].name)};
}

}  // namespace

forward_scope::forward_scope(step_scope& run, const signature& declared, saved_tensors& saves,
                             const precision& in_force)
    : run_{run}, declared_{declared}, saves_{saves}, precision_{in_force} {}

const tensor_ref& forward_scope::input_at(int slot, signature_id of) const {
  require_own(declared_, of, "reads");
  if ((saves_.given >> slot & 1) == 0) refuse_left_out(declared_, slot);
  return saves_.inputs[static_cast<std::size_t>(slot)];
}

tensor_ref forward_scope::save_tensor(std::string_view name, dtype type, const dims& shape) {
  const auto [at, is_new] = saves_.named.try_emplace(std::string{name});
  if (!is_new) {
    throw usage_error{fmt::format(
        "op '{}': the forward saves '{}' twice in one run; save it once, or under another name",
        declared_.name(), name)};
  }
  return at->second = run_.keep(type, shape);
}

tensor_ref forward_scope::make_output(int slot, signature_id of, const dims& shape) {
  require_own(declared_, of, "makes");
  tensor_ref& made = saves_.outputs[static_cast<std::size_t>(slot)];
  if (maker_ == nullptr) return made = run_.make_output(slot, of, shape);
  if (made.data != nullptr) {
    throw usage_error{
        fmt::format("op '{}': the body makes output '{}' twice in one run; make it once",
                    declared_.name(), declared_.outputs()[static_cast<std::size_t>(slot)].name)};
  }
  return made = (*maker_)(slot, shape);
}

std::vector<tensor_ref> forward_scope::inner(const erased_op& op,
                                             std::span<const tensor_ref> inputs,
                                             std::span<const int> into) {
  const signature& declared = op.declared;
  saved_tensors& saves = saves_.inner.emplace_back();
  saves.inputs.assign(inputs.begin(), inputs.end());
  saves.inputs.resize(declared.inputs().size());
  for (std::size_t i = 0; i < saves.inputs.size(); ++i) {
    if (saves.inputs[i].data != nullptr) saves.given |= std::uint64_t{1} << i;
  }
  saves.outputs.resize(declared.outputs().size());
  saves.random_words = run_.inputs().random_words;
  saves.draws_from = REPRISE_MUTANT(ops_inside_draw_the_same_numbers) ? 0 : run_.drawn();
  const maker make = [&](int slot, const dims& shape) {
    const auto i = static_cast<std::size_t>(slot);
    const int to = i < into.size() ? into[i] : -1;
    return to < 0 ? run_.keep(declared.outputs()[i].type, shape)
                  : make_output(to, declared_.id(), shape);
  };
  forward_scope scope{run_, declared, saves, precision_};
  scope.maker_ = &make;
  op.forward(scope);
  for (std::size_t i = 0; i < saves.outputs.size(); ++i) {
    if (saves.outputs[i].data != nullptr) continue;
    throw usage_error{
        fmt::format("op '{}': the body did not make output '{}'; make every output in each run",
                    declared.name(), declared.outputs()[i].name)};
  }
  saves.drawn = run_.drawn() - saves.draws_from;
  return saves.outputs;
}

backward_scope::backward_scope(step_scope& run, const plan& with) : run_{run}, plan_{with} {}

const precision& backward_scope::in_force() const {
  return plan_.in_force;
}
bool backward_scope::is_direct(int slot) const {
  return (plan_.saves.direct >> slot & 1) != 0;
}
bool backward_scope::was_given(int slot) const {
  return (plan_.saves.given >> slot & 1) != 0;
}

const tensor_ref& backward_scope::input_at(int slot, signature_id of) const {
  require_own(plan_.declared, of, "reads");
  if (!was_given(slot)) refuse_left_out(plan_.declared, slot);
  return plan_.saves.inputs[static_cast<std::size_t>(slot)];
}

tensor_ref backward_scope::named(std::string_view name, dtype type) const {
  const auto at = plan_.saves.named.find(name);
  if (at == plan_.saves.named.end()) {
    throw usage_error{
        fmt::format("op '{}': the backward reads '{}', which its forward did not "
                    "save; save it under that name",
                    plan_.declared.name(), name)};
  }
  if (at->second.type != type) {
    throw usage_error{
        fmt::format("op '{}': the backward reads '{}' as {}, and its forward saved "
                    "it as {}; read it as it was saved",
                    plan_.declared.name(), name, name_of(type), name_of(at->second.type))};
  }
  return at->second;
}

const tensor_ref& backward_scope::made_at(int slot, signature_id of) const {
  require_own(plan_.declared, of, "reads");
  return plan_.saves.outputs[static_cast<std::size_t>(slot)];
}

const tensor_ref& backward_scope::state_at(int slot, signature_id of) const {
  const tensor_ref& made = made_at(slot, of);
  const declared_output& out = plan_.declared.outputs()[static_cast<std::size_t>(slot)];
  if (out.is_state) return made;
  throw usage_error{fmt::format(
      "op '{}': the backward asks to overwrite '{}', which is no state and may have been handed "
      "out; declare it with signature::returned_state, or read it with made()",
      plan_.declared.name(), out.name)};
}

bool backward_scope::has_cotangent(int slot, signature_id of) const {
  require_own(plan_.declared, of, "asks for a cotangent of");
  return plan_.cotangents[static_cast<std::size_t>(slot)].data != nullptr;
}

const tensor_ref& backward_scope::cotangent(int slot, signature_id of) const {
  if (!has_cotangent(slot, of)) {
    throw usage_error{fmt::format(
        "op '{}': the backward reads the cotangent of '{}', which the caller did not give; ask "
        "has_grad() first, or give it with gradient_of",
        plan_.declared.name(), plan_.declared.outputs()[static_cast<std::size_t>(slot)].name)};
  }
  return plan_.cotangents[static_cast<std::size_t>(slot)];
}

bool backward_scope::wants_slot(int slot, signature_id of) const {
  require_own(plan_.declared, of, "asks for the gradient of");
  return plan_.gradient_slots[static_cast<std::size_t>(slot)] >= 0;
}

tensor_ref backward_scope::make_gradient(int slot, signature_id of) {
  if (!wants_slot(slot, of)) {
    throw usage_error{fmt::format(
        "op '{}': the backward forms the gradient of '{}', which nobody wants; ask wants() first",
        plan_.declared.name(), plan_.declared.inputs()[static_cast<std::size_t>(slot)].name)};
  }
  const dims& shape = plan_.saves.inputs[static_cast<std::size_t>(slot)].shape;
  const tensor_ref made =
      plan_.make != nullptr ? (*plan_.make)(slot, shape)
                            : run_.make_output(plan_.gradient_slots[static_cast<std::size_t>(slot)],
                                               plan_.step, shape);
  plan_.formed.resize(plan_.declared.inputs().size());
  plan_.formed[static_cast<std::size_t>(slot)] = made;
  return made;
}

delivery backward_scope::add_to(const parameter& trained) {
  std::size_t i = 0;
  for (const declared_use& use : plan_.declared.uses()) {
    if (use.trained == nullptr) continue;
    if (use.trained != &trained) {
      ++i;
      continue;
    }
    if (delivered_[i]) {
      throw usage_error{fmt::format(
          "op '{}': the backward delivers the gradient of '{}' twice; form the sum first",
          plan_.declared.name(), use.name)};
    }
    delivered_.set(i);
    plan_.delivered.set(i);
    return plan_.deliver != nullptr ? (*plan_.deliver)(trained) : plan_.parameters[i];
  }
  throw usage_error{
      fmt::format("op '{}': the backward delivers the gradient of a parameter that the signature "
                  "does not train; name it with signature::trains",
                  plan_.declared.name())};
}

random_base backward_scope::draws(std::uint64_t count) {
  if (plan_.declared.random() == nullptr) {
    throw usage_error{
        fmt::format("op '{}': the backward draws random numbers and the signature names no "
                    "counter; name one with signature::random",
                    plan_.declared.name())};
  }
  const std::uint64_t offset = drawn_;
  drawn_ += count;
  if (drawn_ > plan_.saves.drawn) {
    throw usage_error{fmt::format(
        "op '{}': the backward draws {} random numbers and its forward drew {}; draw those of the "
        "forward, or fewer",
        plan_.declared.name(), drawn_, plan_.saves.drawn)};
  }
  return {{plan_.saves.random_words, philox_counter{0}.words().size()},
          plan_.saves.draws_from + offset};
}

std::vector<tensor_ref> backward_scope::inner(std::size_t which, const erased_op& op,
                                              std::span<const tensor_ref> cotangents,
                                              std::uint64_t wants, std::span<const int> into) {
  const signature& declared = op.declared;
  if (which >= plan_.saves.inner.size()) {
    throw usage_error{fmt::format(
        "op '{}': the backward runs '{}' as op {} inside, and its forward ran {}; run those of the "
        "forward",
        plan_.declared.name(), declared.name(), which, plan_.saves.inner.size())};
  }
  const inner_maker make = [&](int slot, const dims& shape) {
    const auto i = static_cast<std::size_t>(slot);
    const int to = i < into.size() ? into[i] : -1;
    return to >= 0 ? make_gradient(to, plan_.declared.id())
                   : scratch_tensor(run_, declared.inputs()[i].type, shape);
  };
  const inner_delivery deliver = [&](const parameter& trained) { return add_to(trained); };
  return run_inner(
      run_, {op, plan_.saves.inner[which], cotangents, wants, plan_.in_force, make, deliver});
}

tensor_ref scratch_tensor(step_scope& run, dtype type, const dims& shape) {
  const auto bytes = static_cast<std::int64_t>(shape.count() * size_of(type));
  const view<std::uint8_t> memory = run.scratch<std::uint8_t>(dims{bytes});
  return {reinterpret_cast<std::byte*>(memory.data()), type, shape, contiguous_strides(shape)};
}

std::vector<tensor_ref> run_inner(step_scope& run, const inner_backward& what) {
  const signature& declared = what.op.declared;
  std::vector<tensor_ref> given{what.cotangents.begin(), what.cotangents.end()};
  given.resize(declared.outputs().size());
  std::vector<int> slots;
  for (std::size_t i = 0; i < declared.inputs().size(); ++i) {
    slots.push_back((what.wants >> i & 1) == 0 ? -1 : static_cast<int>(i));
  }
  parameter_bits delivered;
  std::vector<tensor_ref> formed;
  const backward_scope::plan part{
      declared,      what.saves, given,  slots,      signature_id::none, {},
      what.in_force, delivered,  formed, &what.make, &what.deliver};
  backward_scope scope{run, part};
  what.op.backward(scope);
  formed.resize(declared.inputs().size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] < 0 || formed[i].data != nullptr) continue;
    throw usage_error{fmt::format(
        "op '{}': the backward did not form the gradient of '{}'; form each that is wanted",
        declared.name(), declared.inputs()[i].name)};
  }
  return formed;
}

}  // namespace reprise
