#include "reprise/replay/step.hpp"

#include <fmt/format.h>

namespace reprise {

step_scope::step_scope(const signature& declared, stream_ref stream, run_memory& memory,
                       std::span<const tensor_ref> inputs,
                       std::span<const std::shared_ptr<mark_observer>> observers,
                       std::source_location place)
    : declared_{&declared},
      stream_{stream},
      memory_{&memory},
      inputs_{inputs},
      observers_{observers},
      place_{place},
      outputs_(declared.outputs().size()) {}

workspace_ref step_scope::workspace() const {
  return {[](void* memory, std::size_t bytes) {
            return static_cast<run_memory*>(memory)->workspace(bytes,
                                                               std::source_location::current());
          },
          memory_};
}

const tensor_ref& step_scope::input_at(int slot, signature_id of) const {
  if (of != declared_->id()) {
    throw usage_error{
        fmt::format("step '{}': the body reads another step's input; use the handles of "
                    "this signature",
                    declared_->name())};
  }
  return inputs_[static_cast<std::size_t>(slot)];
}

tensor_ref step_scope::make_output(int slot, signature_id of, const dims& shape) {
  if (of != declared_->id()) {
    throw usage_error{
        fmt::format("step '{}': the body makes another step's output; use the handles "
                    "of this signature",
                    declared_->name())};
  }
  const declared_output& out = declared_->outputs()[static_cast<std::size_t>(slot)];
  tensor_ref& made = outputs_[static_cast<std::size_t>(slot)];
  if (made.data != nullptr) {
    throw usage_error{fmt::format("step '{}': output '{}' is made twice in one run; make it once",
                                  declared_->name(), out.name)};
  }
  made = {nullptr, out.type, shape, contiguous_strides(shape)};
  made.data = memory_->take(made.bytes(), place_);
  return made;
}

std::vector<tensor_ref> step_scope::finish() const {
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].data == nullptr) {
      throw usage_error{
          fmt::format("step '{}': the body did not make output '{}'; make every output "
                      "in each run",
                      declared_->name(), declared_->outputs()[i].name)};
    }
  }
  return outputs_;
}

}  // namespace reprise
