#include "reprise/sim/watched_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <utility>

#include "reprise/base/mutant.hpp"
#include "reprise/sim/block_search.hpp"

namespace reprise::sim {

namespace {

constexpr int poison = 0xff;
constexpr std::size_t most_dead_bytes = std::size_t{256} << 20;

}  // namespace

watched_memory::~watched_memory() {
  for (auto* among : {&live_, &dead_}) {
    for (auto& [begin, b] : *among) std::free(b.begin - guard);
  }
}

std::byte* watched_memory::allocate(memory_kind kind, std::size_t bytes, bool at_once) {
  const std::size_t size =
      2 * guard + std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (size < bytes) return nullptr;
  std::byte* begin = nullptr;
  if (at_once) {
    // The first that was released with this size; numbers, not addresses, say which is first.
    auto reused = dead_.end();
    for (auto it = dead_.begin(); it != dead_.end(); ++it) {
      if (it->second.bytes != bytes) continue;
      if (reused == dead_.end() || it->second.number < reused->second.number) reused = it;
    }
    if (reused != dead_.end()) {
      begin = reused->second.begin;
      dead_bytes_ -= bytes;
      dead_.erase(reused);
    }
  }
  if (begin == nullptr) {
    void* const fresh = std::aligned_alloc(alignment, size);
    if (fresh == nullptr) return nullptr;
    begin = static_cast<std::byte*>(fresh) + guard;
  }
  // Pinned memory is written by the host, which the device cannot see.
  const bool pinned = kind == memory_kind::pinned;
  std::memset(begin - guard, poison, size);
  block made;
  made.begin = begin;
  made.bytes = bytes;
  made.kind = kind;
  made.number = ++numbers_;
  segment whole;
  whole.end = bytes;
  whole.state = pinned ? life::written : life::unwritten;
  made.parts.emplace(0, std::move(whole));
  held_ += bytes;
  return live_.emplace(made.begin, std::move(made)).first->second.begin;
}

bool watched_memory::release(std::byte* begin) {
  const auto found = live_.find(begin);
  if (found == live_.end()) return false;
  held_ -= found->second.bytes;
  std::memset(begin, poison, found->second.bytes);
  dead_bytes_ += found->second.bytes;
  dead_.insert(live_.extract(found));
  while (dead_bytes_ > most_dead_bytes) forget_oldest();
  return true;
}

// Whoever touches it from now on touches memory that is no block.
void watched_memory::forget_oldest() {
  const auto oldest =
      std::ranges::min_element(dead_, {}, [](const auto& entry) { return entry.second.number; });
  dead_bytes_ -= oldest->second.bytes;
  std::free(oldest->second.begin - guard);
  dead_.erase(oldest);
}

bool watched_memory::strays(const std::byte* begin, std::size_t bytes) const {
  if (bytes == 0 || owns(begin, bytes)) return false;
  return any_lies_in(live_, begin, bytes, std::mem_fn(&block::bytes)) ||
         any_lies_in(dead_, begin, bytes, std::mem_fn(&block::bytes));
}

std::uint64_t watched_memory::number_of(const std::byte* begin) const {
  const block* const at = find(begin, 0);
  return at == nullptr ? 0 : at->number;
}

watched_memory::block* watched_memory::find(block_map& among, const std::byte* begin,
                                            std::size_t bytes) {
  const auto found = holder_of(among, begin, bytes, std::mem_fn(&block::bytes));
  return found == among.end() ? nullptr : &found->second;
}

const watched_memory::block* watched_memory::find(const std::byte* begin, std::size_t bytes) const {
  return find(const_cast<block_map&>(live_), begin, bytes);
}

bool watched_memory::owns(const std::byte* begin, std::size_t bytes) const {
  return find(begin, bytes) != nullptr;
}

bool watched_memory::is_pinned(const std::byte* begin) const {
  const block* const at = find(begin, 0);
  return at != nullptr && at->kind == memory_kind::pinned;
}

bool watched_memory::same_block(const std::byte* a, const std::byte* b) const {
  const block* const at = find(a, 0);
  return at != nullptr && at == find(b, 0);
}

template <class See>
void watched_memory::for_each_part(const block& of, const std::byte* begin, std::size_t bytes,
                                   See&& see) {
  const auto first = static_cast<std::size_t>(begin - of.begin);
  for (auto it = std::prev(of.parts.upper_bound(first));
       it != of.parts.end() && it->first < first + bytes; ++it) {
    see(it->second);
  }
}

std::uint64_t watched_memory::writers_of(const std::byte* begin, std::size_t bytes) const {
  const block* const of = find(begin, bytes);
  if (of == nullptr) return 0;
  std::uint64_t all = 1;
  for_each_part(*of, begin, bytes, [&](const segment& part) {
    const lane_place& at = part.written.at;
    all = (all ^ (std::uint64_t{at.lane} << 32 | at.step)) * 0x100000001b3u;
  });
  return all;
}

lane_place watched_memory::writer_of(const std::byte* at) const {
  lane_place writer;
  if (const block* const of = find(at, 1)) {
    for_each_part(*of, at, 1, [&](const segment& part) { writer = part.written.at; });
  }
  return writer;
}

// A segment begins at `at` from now on, unless the block ends there.
watched_memory::segments::iterator watched_memory::split(block& of, std::size_t at) {
  if (at >= of.bytes) return of.parts.end();
  const auto found = std::prev(of.parts.upper_bound(at));
  if (found->first == at) return found;
  segment rest = found->second;
  found->second.end = at;
  return of.parts.emplace_hint(std::next(found), at, std::move(rest));
}

std::pair<watched_memory::segments::iterator, watched_memory::segments::iterator>
watched_memory::cut_out(block& of, const std::byte* begin, std::size_t bytes) {
  const auto first = static_cast<std::size_t>(begin - of.begin);
  const auto from = split(of, first);
  return {from, split(of, first + bytes)};
}

std::string watched_memory::text_of(const block& of, std::size_t first, std::size_t last,
                                    const segment& part) {
  std::string text = fmt::format("bytes [{}, {}) of {} block {}", first, last,
                                 of.kind == memory_kind::pinned ? "pinned" : "device", of.number);
  if (part.pool) text += fmt::format(" (pool '{}')", *part.pool);
  return text;
}

void watched_memory::tell_of_no_block(const std::byte* begin, std::size_t bytes, bool writes,
                                      const teller& tell) {
  const auto told = [&](std::string where) {
    tell({trespass::kind::given_back, bytes, std::move(where), writes, false, nullptr, false});
  };
  for (const auto* among : {&live_, &dead_}) {
    const block* const at = find(const_cast<block_map&>(*among), begin, 0);
    if (at == nullptr) continue;
    const auto first = static_cast<std::size_t>(begin - at->begin);
    const std::string where = text_of(*at, first, first + bytes, at->parts.begin()->second);
    return told(among == &dead_ ? where + ", which was released"
                                : where + fmt::format(", which has only {}", at->bytes));
  }
  told("memory that is no block of this device");
}

void watched_memory::check_order(const vector_clock& clock, const block& of, std::size_t first,
                                 const segment& part, bool writes, const teller& tell) {
  if (part.written.who && !clock.covers(part.written.at)) {
    return tell({trespass::kind::race, part.end - first, text_of(of, first, part.end, part), writes,
                 false, part.written.who, true});
  }
  if (!writes || REPRISE_MUTANT(sim_reads_do_not_race)) return;
  for (const stamp& r : part.read) {
    if (clock.covers(r.at)) continue;
    return tell({trespass::kind::race, part.end - first, text_of(of, first, part.end, part), true,
                 false, r.who, false});
  }
}

void watched_memory::touch(const vector_clock& clock, const stamp& me, const std::byte* begin,
                           std::size_t bytes, bool writes, const teller& each) {
  if (bytes == 0) return;
  bool told[3] = {};
  const teller tell = [&](const trespass& t) {
    if (!std::exchange(told[static_cast<std::size_t>(t.what)], true)) each(t);
  };
  block* const of = find(live_, begin, bytes);
  if (of == nullptr) return tell_of_no_block(begin, bytes, writes, tell);
  const auto [from, to] = cut_out(*of, begin, bytes);
  for (auto it = from; it != to; ++it) {
    auto& [at, part] = *it;
    if (part.state == life::idle || part.state == life::freed) {
      tell({trespass::kind::given_back, part.end - at, text_of(*of, at, part.end, part), writes,
            part.state == life::idle, part.given_back_by, true});
    } else if (!writes && part.state == life::unwritten) {
      tell({trespass::kind::unwritten, part.end - at, text_of(*of, at, part.end, part), false,
            false, part.written.who, true});
    }
    check_order(clock, *of, at, part, writes, tell);
    if (writes) continue;
    std::erase_if(part.read, [&](const stamp& r) { return clock.covers(r.at); });
    part.read.push_back(me);
  }
  if (!writes) return;
  // Written by one from end to end: one segment again, unless it is not all of one life.
  for (auto it = from; it != to; ++it) {
    segment& part = it->second;
    if (part.state == life::unwritten) part.state = life::written;
    part.written = me;
    part.read.clear();
  }
  auto kept = from;
  for (auto it = std::next(from); it != to;) {
    if (it->second.state == kept->second.state && it->second.pool == kept->second.pool) {
      kept->second.end = it->second.end;
      it = of->parts.erase(it);
    } else {
      kept = it++;
    }
  }
}

void watched_memory::copy(const vector_clock& clock, const stamp& me, const std::byte* from,
                          const std::byte* to, std::size_t bytes, const teller& tell) {
  if (bytes == 0) return;
  block* const source = find(live_, from, bytes);
  std::vector<std::pair<std::size_t, std::size_t>> unwritten;  // of the copy
  if (source != nullptr) {
    const auto first = static_cast<std::size_t>(from - source->begin);
    const auto [begin, end] = cut_out(*source, from, bytes);
    for (auto it = begin; it != end; ++it) {
      if (it->second.state != life::unwritten) continue;
      unwritten.emplace_back(it->first - first, it->second.end - first);
    }
  }
  // The host is not to be given what nobody wrote.
  const bool to_host = is_pinned(to);
  touch(clock, me, from, bytes, false, [&](const trespass& t) {
    if (to_host || t.what != trespass::kind::unwritten) tell(t);
  });
  touch(clock, me, to, bytes, true, tell);
  block* const target = find(live_, to, bytes);
  if (target == nullptr || target->kind == memory_kind::pinned) return;
  for (const auto& [first, last] : unwritten) {
    const auto [begin, end] = cut_out(*target, to + first, last - first);
    for (auto it = begin; it != end; ++it) {
      if (it->second.state == life::written) it->second.state = life::unwritten;
    }
  }
}

bool watched_memory::is_free(const vector_clock& clock, const std::byte* begin,
                             std::size_t bytes) const {
  const block* const of = find(begin, bytes);
  if (of == nullptr) return false;
  bool free = true;
  for_each_part(*of, begin, bytes, [&](const segment& part) {
    free = free && (part.state == life::idle ||
                    (part.state == life::freed && clock.covers(part.written.at)));
  });
  return free;
}

void watched_memory::change(const vector_clock& clock, const stamp& me, block_change change,
                            std::byte* begin, std::size_t bytes, std::string_view pool,
                            const teller& tell) {
  block* const of = find(live_, begin, bytes);
  if (of == nullptr || bytes == 0) return;
  const auto first = static_cast<std::size_t>(begin - of->begin);
  const auto [from, to] = cut_out(*of, begin, bytes);
  if (change == block_change::lent) {
    for (auto it = from; it != to; ++it) it->second.state = life::written;
    return;
  }
  if (change != block_change::idle) {
    for (auto it = from; it != to; ++it) {
      check_order(clock, *of, it->first, it->second, true, tell);
    }
  }
  segment fresh;
  fresh.end = first + bytes;
  fresh.pool = std::make_shared<const std::string>(pool);
  switch (change) {
    case block_change::taken: fresh.state = life::unwritten; break;
    case block_change::freed: fresh.state = life::freed; break;
    case block_change::idle: fresh.state = life::idle; break;
    case block_change::lent: break;
  }
  if (change != block_change::taken) fresh.given_back_by = me.who;
  if (change != block_change::idle) fresh.written = me;
  of->parts.erase(from, to);
  of->parts.emplace(first, std::move(fresh));
  if (!REPRISE_MUTANT(sim_memory_is_not_poisoned)) std::memset(begin, poison, bytes);
}

}  // namespace reprise::sim
