#include "reprise/grad/inline_pass.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/grad/op_parts.hpp"

namespace reprise {

void include_op(signature& in, const erased_op& op, const std::string& prefix) {
  in.include(op.declared, prefix);
  for (const declared_use& use : op.declared.uses()) {
    if (use.trained == nullptr) continue;
    // What a warm-up adds there is put back.
    in.state(fmt::format("gradient of {}.{}", prefix, use.name), use.trained->grad);
    const auto where = [to = use.trained] {
      return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(to->grad.data));
    };
    // What lies elsewhere is not declared: only a new step can record it.
    in.fact(fmt::format("gradient buffer of {}.{}", prefix, use.name), where,
            on_breach::run_eagerly);
  }
}

inline_pass::inline_pass(step_scope& run, const signature& of, deliverer to)
    : run_{run}, declared_{of}, to_{std::move(to)}, in_force_{precision_now()} {
  saves_.outputs.resize(of.outputs().size());
}

tensor_ref inline_pass::given(int slot, signature_id of) {
  const tensor_ref& at = run_.input_at(slot, of);
  const bool is_direct = (run_.inputs().direct >> slot & 1) != 0;
  return is_direct ? bring_input(run_, at, true) : at;
}

std::vector<tensor_ref> inline_pass::forward(const erased_op& op,
                                             std::span<const tensor_ref> inputs,
                                             std::span<const int> into) {
  forward_scope scope{run_, declared_, saves_, in_force_};
  std::vector<tensor_ref> made = scope.inner(op, inputs, into);
  ran_.push_back({op.declared.id()});
  return made;
}

std::vector<tensor_ref> inline_pass::backward(std::size_t which, const erased_op& op,
                                              std::span<const tensor_ref> cotangents,
                                              std::uint64_t wants, std::span<const int> into) {
  const auto refuse = [&](std::string_view why) {
    throw usage_error{fmt::format("step '{}': backward {} of op '{}' inside of it {}",
                                  declared_.name(), which, op.declared.name(), why)};
  };
  if (which >= ran_.size()) {
    refuse(fmt::format("has no forward, of which {} ran; run the forward first", ran_.size()));
  }
  if (ran_[which].op != op.declared.id()) {
    refuse("comes for the forward of another op; give the op that ran");
  }
  // It may have overwritten what was saved.
  if (std::exchange(ran_[which].has_run_back, true)) {
    refuse("runs twice; run the forward once more for it");
  }
  const inner_maker make = [&](int slot, const dims& shape) {
    const auto i = static_cast<std::size_t>(slot);
    const int to = i < into.size() ? into[i] : -1;
    return to >= 0 ? run_.make_output(to, declared_.id(), shape)
                   : scratch_tensor(run_, op.declared.inputs()[i].type, shape);
  };
  const inner_delivery deliver = [&](const parameter& trained) {
    if (!to_)
      refuse("delivers the gradient of a parameter, and this pass takes none; give it a deliverer");
    return to_(trained);
  };
  return run_inner(run_, {op, saves_.inner[which], cotangents, wants, in_force_, make, deliver});
}

}  // namespace reprise
