// What the player plays with: ops with all that they refer to, and results that are kept until all
// calls are enqueued. For this folder's .cpp files; one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/grad/graphed_op.hpp"
#include "scenarios/grad_plain.hpp"
#include "scenarios/grad_schedule.hpp"

namespace reprise::scenarios {

using on_host::floats;

// What the ops of one schedule share. Everything outlives them.
struct world {
  stream_ref s;
  pool& memory;
  byte_budget& budget;
  philox_counter& counter;
};

// Copies them, in stream order.
void upload(stream_ref s, const floats& values, view<float> to);

// Stays where it is.
struct played_op {
  buffer<float> value;  // of the weight
  buffer<float> gradient;
  parameter weight;
  buffer<std::int32_t> steps;
  buffer<float> running;
  std::shared_ptr<graphed> op;
  std::vector<input<float>> inputs;
  std::vector<output<float>> outputs;  // y, then the state of `remembering`
};

// Ops of one kind and scheduled_op::work say that they do the same work.
std::unique_ptr<played_op> make_op(const world& in, const scheduled_op& as, int index,
                                   const floats& weight);

// Results as they were behind their calls, and what they should be.
class kept_results {
 public:
  // The pool outlives it.
  explicit kept_results(pool& memory) : memory_{&memory} {}

  // Copies it in stream order; `held`, unless it is empty, must not change until the end.
  void keep(stream_ref s, std::size_t call, std::string what, view<const float> from,
            const floats& expected, const tensor<float>& held);

  struct difference {
    std::size_t call;
    std::string text;
  };
  // Waits for the stream.
  std::optional<difference> first_difference(stream_ref s) const;

 private:
  struct kept {
    std::size_t call;
    std::string what;
    buffer<float> copied;
    tensor<float> held;
    floats expected;
  };

  pool* memory_;
  std::vector<kept> all_;
};

}  // namespace reprise::scenarios
