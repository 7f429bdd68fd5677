// A frame: the static state of one forward and backward pair, with the two recordings.
//
// Its state says whose backward may run on it. `owned` by a ticket from the moment that the
// ticket's forward is enqueued; before static memory is touched it is `empty`, so that whatever
// fails in between leaves no owner. A backward makes it `consumed` before it runs. Used under the
// turn of its pool. For this room's .cpp files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reprise/grad/forward_call.hpp"
#include "reprise/grad/frame_memory.hpp"
#include "reprise/grad/op_parts.hpp"
#include "reprise/grad/scopes.hpp"
#include "reprise/replay/recording.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

class lane;

// `poisoned`: its backward failed in a way that leaves its memory unknown. `released`: its memory
// was given back.
enum class frame_state : std::uint8_t { empty, owned, consumed, poisoned, released };

// Tickets and times of replays, in one order.
ticket_id next_ticket();

// The backward of a frame: a step over the frame's memory, and its recording.
struct backward_part {
  block own;   // what only its recording writes
  block lent;  // of gradients that are handed out where they lie
  std::optional<step> what;
  std::optional<recording> made;  // the first to go: it may move gradients out of `lent`
  std::uint64_t wanted = 0;       // inputs whose gradients it forms
  parameter_bits delivers;        // parameters that its body delivers
  matrix_precision products = matrix_precision::full;
  std::vector<int> gradient_slots;  // by input: the output of the step; -1: none
  int places = -1;                  // the input that says where they go; -1: they are lent
};

struct frame {
  frame(std::shared_ptr<lane> of, std::shared_ptr<frame_memory> from, byte_budget& budget)
      : in{std::move(of)}, memory{std::move(from)}, share{budget} {}
  ~frame();
  frame(const frame&) = delete;
  frame& operator=(const frame&) = delete;

  bool is_owned_by(ticket_id ticket) const {
    return state == frame_state::owned && owner == ticket && ticket != ticket_id::none &&
           !memory->voided.is_void(index, ticket);
  }
  // Whether the ticket's loss is another frame's doing.
  bool lost_to_the_pool(ticket_id ticket) const {
    return state == frame_state::owned && owner == ticket && memory->voided.is_void(index, ticket);
  }
  // Whether a backward is owed by its owner.
  bool owes() const;

  // Ahead of a write to its static memory: nobody owns it, nor what the write may run over.
  void invalidate();
  // Behind the enqueued forward.
  void publish(const std::shared_ptr<forward_call>& call);

  std::shared_ptr<lane> in;
  std::shared_ptr<frame_memory> memory;
  std::uint64_t index = 0;        // capture order in its memory
  bool scratch_is_apart = false;  // its replay runs over nothing that others keep

  frame_state state = frame_state::empty;
  ticket_id owner = ticket_id::none;
  ticket_id last = ticket_id::none;  // of the last forward here
  std::weak_ptr<forward_call> pending;

  saved_tensors saves;
  backward_run running;  // of the backward that runs now
  std::optional<recording> forward;
  std::optional<backward_part> backward;
  bool backward_failed = false;
  std::span<std::byte> kept;
  block own;           // what only the forward's recording writes
  budget_share share;  // of what its recordings hold beside the pool
};

}  // namespace reprise
