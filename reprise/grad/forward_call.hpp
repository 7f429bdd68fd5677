// What one forward leaves behind for its backward: the ticket, the versions of parameters, and the
// inputs; nothing else, whichever path it took. For this room's .cpp files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/grad/counts.hpp"
#include "reprise/grad/precision.hpp"
#include "reprise/grad/scopes.hpp"
#include "reprise/grad/tensor.hpp"
#include "reprise/grad/ticket.hpp"
#include "reprise/replay/philox_counter.hpp"

namespace reprise {

struct frame;
struct op_parts;

struct version_stamp {
  std::shared_ptr<const version_counter::count> count;  // null: not looked at
  std::uint64_t value = 0;

  bool moved() const { return count != nullptr && count->load() != value; }
};

struct saved_input {
  binding bound;  // host memory: in `host`
  version_stamp version;
  std::shared_ptr<held_tensor> held;  // null: the caller keeps it
  std::vector<std::byte> host;
  const std::byte* lay_at = nullptr;  // when the forward that owns the frame ran

  // Where it lies now.
  binding now() const {
    binding b = bound;
    if (held) b.to.data = held->now().data;
    return b;
  }
};

struct forward_call {
  std::shared_ptr<const op_parts> op;
  ticket_id ticket = ticket_id::none;  // none: it ran eagerly
  std::shared_ptr<frame> in;           // where it ran, unless eagerly
  eager_cause cause = eager_cause::key;

  std::vector<version_stamp> parameters;  // by use of the signature
  std::vector<std::uint64_t> words;       // facts, then key parts, as they read then
  std::vector<saved_input> inputs;
  std::vector<dims> outputs;     // their shapes, by slot
  philox_counter drawn_from{0};  // where the forward began to draw
  precision in_force;
  bool is_done = false;      // a backward has run
  parameter_bits delivered;  // parameters that have got its gradient, by a backward that failed
};

}  // namespace reprise
