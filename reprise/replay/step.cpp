#include "reprise/replay/step.hpp"

#include <fmt/format.h>

#include "reprise/base/mutant.hpp"

namespace reprise {

step_scope::step_scope(const signature& declared, site at, run_memory& memory, run_inputs inputs,
                       const break_taker& breaks,
                       std::span<const std::shared_ptr<mark_observer>> observers,
                       aside_branch* beside)
    : declared_{&declared},
      run_{at.stream, memory},
      memory_{&memory},
      inputs_{std::move(inputs)},
      breaks_{&breaks},
      observers_{observers},
      place_{at.place},
      outputs_(declared.outputs().size()),
      beside_{beside} {}

// Whether there is a branch or not, its kernels have a workspace of their own: a recording then
// takes the memory that its warm-up took.
const branch_scope& step_scope::aside() {
  if (!aside_) {
    aside_.emplace(beside_ != nullptr ? stream_ref{beside_->side} : stream_ref{run_}, *memory_);
  }
  if (beside_ != nullptr) {
    beside_->crossing.record(run_, place_);
    if (!REPRISE_MUTANT(aside_does_not_wait_for_the_run)) beside_->crossing.wait(*aside_, place_);
  }
  return *aside_;
}

void step_scope::join_aside() {
  if (beside_ == nullptr || !aside_ || REPRISE_MUTANT(aside_is_not_joined)) return;
  beside_->crossing.record(*aside_, place_);
  beside_->crossing.wait(run_, place_);
}

break_ref step_scope::breaks() const {
  return {[](void* self, std::string_view why, const break_work& work) {
            static_cast<step_scope*>(self)->eagerly(why, work);
          },
          const_cast<step_scope*>(this)};
}

void step_scope::eagerly(std::string_view why, const break_work& work) {
  (*breaks_)(why, work);
}

step::step(signature declared, std::function<void(step_scope&)> body, eager_only never)
    : declared_{std::move(declared)}, body_{std::move(body)}, never_{std::move(never.why)} {
  if (!REPRISE_MUTANT(steps_of_one_signature_share_recordings)) declared_.record_anew();
}

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
  return {{inputs_.random_words, philox_counter{0}.words().size()}, offset};
}

const tensor_ref& step_scope::input_at(int slot, signature_id of) const {
  if (of != declared_->id()) {
    throw usage_error{
        fmt::format("step '{}': the body reads another step's input; use the handles of "
                    "this signature",
                    declared_->name())};
  }
  if ((inputs_.given >> slot & 1) == 0) {
    throw usage_error{fmt::format(
        "step '{}': the body reads input '{}', which this call left out; ask given() first",
        declared_->name(), declared_->inputs()[static_cast<std::size_t>(slot)].name)};
  }
  return inputs_.by_slot[static_cast<std::size_t>(slot)];
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
  made = keep(out.type, shape);
  return made;
}

tensor_ref step_scope::keep(dtype type, const dims& shape) {
  std::byte* const memory = memory_->keep(bytes_of(shape, size_of(type)), place_);
  return {memory, type, shape, contiguous_strides(shape)};
}

std::size_t step_scope::bytes_of(const dims& shape, std::size_t element_bytes) const {
  constexpr std::size_t most = std::size_t{1} << 50;
  std::size_t bytes = element_bytes;
  for (int i = 0; i < shape.rank; ++i) {
    const std::int64_t extent = shape[i];
    if (extent < 0 || (extent != 0 && bytes > most / static_cast<std::size_t>(extent))) {
      throw usage_error{fmt::format(
          "step '{}': there is no memory of shape {}; say each extent, and one that a device has",
          declared_->name(), to_string(shape))};
    }
    bytes *= static_cast<std::size_t>(extent);
  }
  return bytes;
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
