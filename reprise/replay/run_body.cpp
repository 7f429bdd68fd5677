#include "reprise/replay/run_body.hpp"

#include <fmt/format.h>

#include <utility>

#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

run_inputs inputs_in(std::byte* staged, const signature& declared, bindings given,
                     const input_layout& layout) {
  run_inputs inputs;
  inputs.by_slot.resize(declared.inputs().size());
  inputs.direct = layout.direct();
  for (const binding& b : given) {
    if (b.is_output) continue;
    const auto slot = static_cast<std::size_t>(b.slot);
    // A direct input without a piece in the block is taken where it is.
    const bool in_place = layout.is_direct(slot) && layout.piece_of(b).bytes == 0;
    if (in_place) inputs.direct &= ~(std::uint64_t{1} << slot);
    inputs.by_slot[slot] = {in_place ? b.to.data : staged + layout.offset(slot), b.to.type,
                            b.to.shape, contiguous_strides(b.to.shape)};
    inputs.given |= std::uint64_t{1} << slot;
  }
  inputs.random_words = reinterpret_cast<const std::uint64_t*>(staged + layout.random_offset());
  return inputs;
}

// Observers are told of the begin of a run, and of its end however that is reached.
class told_of_a_run {
 public:
  explicit told_of_a_run(observers who) : who_{who} {}
  void begin(step_scope& scope) {
    for (const auto& observer : who_) {
      observer->on_begin(scope);
      ++begun_;
    }
  }
  ~told_of_a_run() {
    while (begun_ != 0) who_[--begun_]->on_abandoned();
  }
  told_of_a_run(const told_of_a_run&) = delete;
  told_of_a_run& operator=(const told_of_a_run&) = delete;

  // The last one first: what they watch is nested.
  std::vector<std::shared_ptr<recorded_marks>> end(step_scope& scope) {
    std::vector<std::shared_ptr<recorded_marks>> left;
    while (begun_ != 0) {
      if (auto marks = who_[begun_ - 1]->on_end(scope)) left.push_back(std::move(marks));
      --begun_;
    }
    return left;
  }

 private:
  observers who_;
  std::size_t begun_ = 0;
};

}  // namespace

body_run run_body(site at, const step& what, bindings given, const input_layout& layout,
                  std::byte* staged, run_memory& memory, const input_source& from,
                  const break_taker& breaks, observers watching, aside_branch* beside) {
  const signature& declared = what.declared();
  if (from.now != nullptr) {
    from.now->stage(at.stream, given, layout, staged, at.place, declared.random());
  }
  if (from.node != nullptr) from.node->record(at, staged);

  run_inputs inputs = inputs_in(staged, declared, given, layout);
  inputs.run = from.run;
  step_scope scope{declared, at, memory, std::move(inputs), breaks, watching, beside};
  told_of_a_run told{watching};
  told.begin(scope);
  what.run(scope);
  std::vector<std::shared_ptr<recorded_marks>> marks = told.end(scope);
  scope.join_aside();
  return {scope.finish(), scope.drawn(), std::move(marks)};
}

void check_outputs(const step& what, bindings given, std::span<const tensor_ref> made) {
  for (const binding& b : given) {
    if (!b.is_output) continue;
    const auto slot = static_cast<std::size_t>(b.slot);
    if (b.to.shape.count() == made[slot].shape.count()) continue;
    throw usage_error{
        fmt::format("step '{}': output '{}' has {} elements and its memory room for "
                    "{}; give as many as the output has",
                    what.name(), what.declared().outputs()[slot].name, made[slot].shape.count(),
                    b.to.shape.count())};
  }
}

void copy_outputs(site at, bindings given, std::span<const tensor_ref> made) {
  for (const binding& b : given) {
    if (!b.is_output) continue;
    const tensor_ref& from = made[static_cast<std::size_t>(b.slot)];
    copy_bytes(at, from.data, b.to.data, from.bytes());
  }
}

}  // namespace reprise
