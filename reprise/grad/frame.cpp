#include "reprise/grad/frame.hpp"

#include <atomic>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/grad/lane.hpp"

namespace reprise {

ticket_id next_ticket() {
  static std::atomic<std::uint64_t> last{0};
  return ticket_id{last.fetch_add(1, std::memory_order_relaxed) + 1};
}

ticket_id forward_ticket::id() const noexcept {
  return call_ ? call_->ticket : ticket_id::none;
}

frame::~frame() {
  lane::remains left{memory, kept, {}, {}, std::move(share)};
  if (forward) left.recordings.push_back(*std::move(forward));
  if (backward && backward->made) left.recordings.push_back(*std::move(backward->made));
  left.blocks.push_back(std::move(own));
  if (backward) {
    left.blocks.push_back(std::move(backward->own));
    left.blocks.push_back(std::move(backward->lent));
  }
  in->bury(std::move(left));
}

bool frame::owes() const {
  if (!is_owned_by(owner) || REPRISE_MUTANT(nothing_is_owed)) return false;
  const std::shared_ptr<forward_call> call = pending.lock();
  return call != nullptr && !call->is_done;
}

void frame::invalidate() {
  if (REPRISE_MUTANT(frame_is_revoked_after_the_write)) return;
  owner = ticket_id::none;
  state = frame_state::empty;
  if (!scratch_is_apart) memory->voided.overwritten(index, next_ticket());
}

void frame::publish(const std::shared_ptr<forward_call>& call) {
  if (REPRISE_MUTANT(frame_is_revoked_after_the_write)) {
    if (!scratch_is_apart) memory->voided.overwritten(index, next_ticket());
  }
  call->ticket = next_ticket();
  owner = last = call->ticket;
  pending = call;
  state = frame_state::owned;
}

}  // namespace reprise
