// Memory: slabs that come and go, what pools do with them, and what the host touches itself.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/sim/adversary.hpp"

namespace reprise::sim {

namespace {

constexpr std::size_t card_bytes = std::size_t{16} << 30;

}  // namespace

memory_figures adversary::figures() {
  return {card_bytes, card_bytes - std::min(card_bytes, memory_.held())};
}

std::byte* adversary::allocate(memory_kind kind, std::size_t bytes, place from) {
  if (bytes > figures().free) return nullptr;
  std::byte* const begin = memory_.allocate(kind, bytes, dice_.chance(temper_.reuse));
  notes_.add(fmt::format("thread {} allocates {} {} bytes ({})", turns_.number(), bytes,
                         kind == memory_kind::pinned ? "pinned" : "device", place_text(from)));
  return begin;
}

// What is still to run declared what it touches; that is enough to know that it comes too late.
void adversary::release(memory_kind kind, std::byte* block) noexcept {
  if (block == nullptr || is_stranger("release memory")) return;
  for (const auto& [number, one] : pending_) {
    if (!one->what) continue;
    const work what = one->what->borrow();
    const auto late = std::ranges::find_if(what.accesses, [&](const access& a) {
      const auto* const at = static_cast<const std::byte*>(a.begin);
      return a.bytes != 0 && memory_.owns(at, bytes_at_begin(a)) && memory_.same_block(at, block);
    });
    if (late == what.accesses.end()) continue;
    const bool pinned = kind == memory_kind::pinned;
    notes_.found(pinned ? finding_kind::stale_source : finding_kind::use_after_free,
                 fmt::format("{} is still to run when the {} block {} that it {} is released; "
                             "release it behind a wait for the work",
                             text_of(*one, what), pinned ? "pinned" : "device",
                             memory_.number_of(block), late->writes ? "writes" : "reads"));
    break;
  }
  memory_.release(block);
}

// Something that the host does now: behind all that it knows, and before all that it enqueues.
item adversary::host_item() {
  item now;
  now.at = {host_at_.lane, ++host_at_.step};
  known_.advance_to(now.at);
  now.clock = known_;
  return now;
}

void adversary::note(stream_id stream, const block_note& what) noexcept {
  if (is_stranger("use a pool")) return;
  stored_note stored{what.change, what.begin, what.bytes, std::string{what.pool}, what.place};
  const auto found = lines_.find(stream);
  if (found == lines_.end() || what.change == block_change::idle) {
    const item now = host_item();
    if (what.change != block_change::taken) return do_notes(now, {stored});
    // What a capture takes again it may have freed itself, with work on it still to come; so this
    // is by nobody whom anything could race with.
    if (!memory_.is_free(known_, what.begin, what.bytes)) return;
    memory_.change(now.clock, {}, what.change, what.begin, what.bytes, what.pool,
                   [](const trespass&) {});
    return;
  }
  const item_ref made = next_on(found->second);
  made->notes.push_back(std::move(stored));
  enqueue(made);
}

// Of all that came before the work, only what its own lane knows for sure: the host may know more,
// and is held to less.
void adversary::acquired(const std::byte* word) noexcept {
  if (!options_.watches_memory || is_stranger("read a word")) return;
  const lane_place writer = memory_.writer_of(word);
  if (writer.step == 0 || REPRISE_MUTANT(sim_acquired_word_orders_nothing)) return;
  known_.advance_to(writer);
}

void adversary::host_touches(const void* begin, std::size_t bytes, bool writes, place from) {
  const item now = host_item();
  const std::string who = fmt::format("the host ({})", place_text(from));
  const party_ref me = std::make_shared<const party>(party{who, items_, false});
  memory_.touch(now.clock, {now.at, me}, static_cast<const std::byte*>(begin), bytes, writes,
                [&](const trespass& t) { tell(*me, t); });
}

}  // namespace reprise::sim
