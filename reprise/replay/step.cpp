#include "reprise/replay/step.hpp"

#include <fmt/format.h>

namespace reprise {

step_scope::step_scope(const signature& declared, stream_ref stream, run_memory& memory,
                       std::span<const tensor_ref> inputs, const std::uint64_t* random_words,
                       std::span<const std::shared_ptr<mark_observer>> observers,
                       std::source_location place)
    : declared_{&declared},
      run_{stream, memory},
      memory_{&memory},
      inputs_{inputs},
      random_words_{random_words},
      observers_{observers},
      place_{place},
      outputs_(declared.outputs().size()) {}

workspace_ref branch_scope::workspace() const {
  return {[](void* self, std::size_t bytes) {
            const auto& branch = *static_cast<const branch_scope*>(self);
            return branch.memory_->workspace(bytes, branch.workspace_,
                                             std::source_location::current());
          },
          const_cast<branch_scope*>(this)};
}

random_base step_scope::draws(std::uint64_t count) {
  if (declared_->random() == nullptr) {
    throw usage_error{
        fmt::format("step '{}': the body draws random numbers and its signature names no counter; "
                    "name one with signature::random",
                    declared_->name())};
  }
  const std::uint64_t offset = drawn_;
  drawn_ += count;
  return {{random_words_, philox_counter{0}.words().size()}, offset};
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
