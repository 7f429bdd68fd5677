// Memory: slabs that come and go, what pools do with them, and what the host touches itself.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
                         kind == memory_kind::pinned ? "pinned" : "device", sim::text_of(from)));
  return begin;
}

// What is still to run declared what it touches; that is enough to know that it comes too late.
void adversary::release(memory_kind kind, std::byte* block) noexcept {
  if (block == nullptr) return;
  std::vector<const item*> left;
  for (const auto& [id, on] : lines_) {
    for (const item_ref& last : on->tail) left.push_back(last.get());
  }
  for (const auto& [body, of] : executables_) {
    if (of.last) left.push_back(of.last.get());
  }
  item_set seen;
  while (!left.empty()) {
    const item* const one = left.back();
    left.pop_back();
    if (one->done || !seen.insert(one).second) continue;
    for (const item_ref& before : one->before) left.push_back(before.get());
    if (!one->what) continue;
    const work what = one->what->borrow();
    for (const access& a : what.accesses) {
      const auto* const at = static_cast<const std::byte*>(a.begin);
      if (!memory_.owns(at, a.bytes) || !memory_.same_block(at, block)) continue;
      notes_.found(
          kind == memory_kind::pinned ? finding_kind::stale_source : finding_kind::use_after_free,
          fmt::format("{} is still to run when the {} memory it {} is released",
                      text_of(*one, what), kind == memory_kind::pinned ? "pinned" : "device",
                      a.writes ? "writes" : "reads"));
      break;
    }
  }
  memory_.release(block);
}

void adversary::note(stream_id stream, const block_note& what) noexcept {
  stored_note stored{what.change, what.begin, what.bytes, std::string{what.pool}, what.place};
  const auto found = lines_.find(stream);
  if (found == lines_.end() || what.change == block_change::idle) {
    item now;
    now.clock = known_;
    now.at = {host_at_.lane, ++host_at_.step};
    now.clock.advance_to(now.at);
    known_.advance_to(now.at);
    return do_notes(now, {stored});
  }
  const item_ref made = next_on(found->second);
  made->notes.push_back(std::move(stored));
  enqueue(made);
}

void adversary::host_touches(const void* begin, std::size_t bytes, bool writes, place from) {
  item now;
  now.at = {host_at_.lane, ++host_at_.step};
  known_.advance_to(now.at);
  now.clock = known_;
  const std::string who = fmt::format("the host ({})", sim::text_of(from));
  memory_.touch(now.clock, {now.at, std::make_shared<const party>(party{who, false})},
                static_cast<const std::byte*>(begin), bytes, writes,
                [&](const trespass& t) { tell(who, t); });
}

}  // namespace reprise::sim
