// Running one work, and looking at what it touches.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/sim/adversary.hpp"

namespace reprise::sim {

namespace {

std::string_view verb(bool writes) {
  return writes ? "writes" : "reads";
}

}  // namespace

// "'fill' on stream 2 (file.cpp:12)", "'fill' of launch 3, captured on stream 2 (file.cpp:12)"
std::string adversary::text_of(const item& one, const work& what) const {
  const std::string where =
      one.of ? fmt::format("of launch {}, captured on stream {}", one.of->number, one.captured_on)
             : fmt::format("on stream {}", one.on->number);
  return fmt::format("'{}' {} ({})", what.label, where, place_text(what.place));
}

void adversary::execute(const item_ref& one) {
  ++progress_;
  idle_pauses_ = 0;
  const bool off =
      one->driven_by != nullptr && std::atomic_ref{*const_cast<std::uint8_t*>(one->driven_by)}.load(
                                       std::memory_order_relaxed) == 0;
  one->end = one->earliest;
  if (!one->what || off) return complete(one);
  const work what = one->what->borrow();
  const auto lasts = durations_.find(what.label);
  one->end += (lasts == durations_.end() ? 1 : lasts->second) * one->on->slowness;
  notes_.add(fmt::format("  runs {}", text_of(*one, what)));
  notes_.add(timeline_row{std::string{what.label}, fmt::format("stream {}", one->on->number),
                          one->earliest, one->end});
  notes_.count_operation();
  if (what.kind == work_kind::host_call) {
    // On a thread of its own, as on a GPU: it may have to wait for a lock that another holds.
    host_calls_.push_back(one);
    if (caller_ == 0) caller_ = turns_.start([this] { call_host(); });
    return;
  }
  run_what(one, what);
  complete(one);
}

// What a work throws has nowhere to go: it is a finding.
void adversary::run_what(const item_ref& one, const work& what) {
  inside_ = one.get();
  inside_thread_ = turns_.number();
  std::string thrown;
  try {
    if (what.kind == work_kind::kernel) {
      execute_kernel(*one, what);
    } else if (!options_.watches_memory) {
      run_now(what, {});
    } else {
      check_source(*one, what);
      check_declared(*one, what);
      if (!would_stray(*one, what)) run_now(what, {});
    }
  } catch (const std::exception& failure) {
    thrown = failure.what();
  } catch (...) {
    thrown = "something that is no exception";
  }
  inside_ = nullptr;
  if (thrown.empty()) return;
  notes_.found(finding_kind::misuse,
               fmt::format("{} threw while it ran: {}", text_of(*one, what), thrown));
}

// The thread for host calls, which run one after the other.
void adversary::call_host() {
  const std::function<bool()> due = [&] { return !host_calls_.empty() || caller_ends_; };
  for (;;) {
    turns_.waits_for(&due);
    while (!due()) turns_.hand_on(dice_);
    turns_.waits_for(nullptr);
    if (host_calls_.empty()) return;
    const item_ref one = std::move(host_calls_.front());
    host_calls_.pop_front();
    run_what(one, one->what->borrow());
    complete(one);
    // It may have told the host, in whatever way, that all before it is over.
    known_.join(one->clock);
    host_time_ = std::max(host_time_, one->end);
    ++progress_;
  }
}

void adversary::complete(const item_ref& one) {
  do_notes(*one, one->notes);
  if (one->node_notes != nullptr) do_notes(*one, *one->node_notes);
  one->done = true;
  pending_.erase(one->number);
  latest_end_ = std::max(latest_end_, one->end);
  for (const item_ref& next : one->then) {
    next->earliest = std::max(next->earliest, one->end);
    if (--next->waits_for == 0) ready_.push_back(next);
  }
  one->then.clear();
  one->before.clear();
  if (one->what) ended_.push_back(std::move(one->what));
  if (one->of) ended_.push_back(std::move(one->of));
  one->node_notes = nullptr;
  one->on.reset();  // whose tail may hold it
}

// Whether a copy or fill would touch what is no block; that has been told, and nothing is done.
bool adversary::would_stray(const item& one, const work& what) const {
  if (what.kind == work_kind::fill) return memory_.strays(what.fill.to, what.fill.bytes);
  if (what.kind != work_kind::copy) return false;
  const bool staged = what.copy.from == one.staged.data();
  return memory_.strays(what.copy.to, what.copy.bytes) ||
         (!staged && memory_.strays(what.copy.from, what.copy.bytes));
}

// The body itself says what it touches; what its launch declared is what it may touch.
void adversary::execute_kernel(const item& one, const work& what) {
  if (!options_.watches_memory) return run_now(what, {});
  touched_.clear();
  {
    const noting_touches here{touched_};
    run_now(what, {});
  }
  // By block and place, which are the same on every machine; addresses are not.
  const auto taken = touched_.taken();
  std::vector<touched_range> ranges{taken.begin(), taken.end()};
  std::ranges::stable_sort(ranges, {}, [&](const touched_range& range) {
    return std::pair{range.writes, memory_.number_of(range.begin)};
  });
  for (const touched_range& range : ranges) {
    const std::byte* const end = range.begin + range.bytes;
    // The part of the range that is declared, from its begin on.
    const std::byte* covered = range.begin;
    for (bool further = true; further && covered < end;) {
      further = false;
      for (const access& a : what.accesses) {
        if (range.writes && !a.writes) continue;
        const auto cover = [&](const std::byte* from, std::size_t bytes) {
          // Behind a word that is null lies nothing.
          if (from == nullptr || from > covered || covered >= from + bytes) return;
          covered = std::min(end, from + bytes);
          further = true;
        };
        const auto* const begin = static_cast<const std::byte*>(a.begin);
        if (!a.indirect) {
          cover(begin, a.bytes);
          continue;
        }
        if (!range.writes) cover(begin, sizeof(void*));
        cover(*static_cast<const std::byte* const*>(a.begin), a.bytes);
      }
    }
    const std::span<std::byte> workspace = what.kernel.workspace;
    if (covered != end && !workspace.empty() && range.begin >= workspace.data() &&
        covered == workspace.data() + workspace.size()) {
      notes_.found(
          finding_kind::undeclared_access,
          fmt::format("{} {} {} bytes past its {} bytes of workspace; let its cell's "
                      "workspace_bytes ask for them, or do not touch them",
                      text_of(one, what), verb(range.writes), end - covered, workspace.size()));
    } else if (covered != end) {
      notes_.found(finding_kind::undeclared_access,
                   fmt::format("{} {} {} bytes that its launch did not declare as {}; declare "
                               "them, or do not touch them",
                               text_of(one, what), verb(range.writes), end - covered,
                               range.writes ? "write or inout" : "read"));
    }
    touch(one, what, range.begin, range.bytes, range.writes);
  }
}

// What is no kernel does as it says; host calls and external works are believed.
void adversary::check_declared(const item& one, const work& what) {
  switch (what.kind) {
    case work_kind::copy: {
      if (what.copy.bytes == 0) return;
      if (memory_.owns(what.copy.from, what.copy.bytes) &&
          memory_.owns(what.copy.to, what.copy.bytes)) {
        const party_ref me = party_of(one, what);
        return memory_.copy(one.clock, {one.at, me}, what.copy.from, what.copy.to, what.copy.bytes,
                            [&](const trespass& t) { tell(*me, t); });
      }
      const bool staged = what.copy.from == one.staged.data();
      if (!staged && !is_pageable(what.copy.from, what.copy.bytes)) {
        touch(one, what, what.copy.from, what.copy.bytes, false);
      }
      if (!is_pageable(what.copy.to, what.copy.bytes)) {
        touch(one, what, what.copy.to, what.copy.bytes, true);
      }
      return;
    }
    case work_kind::fill: return touch(one, what, what.fill.to, what.fill.bytes, true);
    case work_kind::host_call:
    case work_kind::external:
      for (const access& a : what.accesses) {
        touch(one, what, static_cast<const std::byte*>(a.begin), a.bytes, a.writes);
      }
      return;
    default: return;
  }
}

// The host may write pinned memory whenever it likes, but not between a copy and its source.
void adversary::check_source(const item& one, const work& what) {
  if (!one.source.taken) return;
  if (!memory_.owns(what.copy.from, what.copy.bytes)) return;  // told when it is touched
  const source_print now = print_of(what);
  if (now.hash == one.source.hash || now.writers != one.source.writers) return;
  notes_.found(finding_kind::stale_source,
               fmt::format("{} reads {} bytes of pinned memory that the host has changed since the "
                           "copy was enqueued; wait for the copy first, or use another slot",
                           text_of(one, what), what.copy.bytes));
}

party_ref adversary::party_of(const item& one, const work& what) const {
  return std::make_shared<const party>(party{text_of(one, what), one.number, false});
}

void adversary::touch(const item& one, const work& what, const std::byte* begin, std::size_t bytes,
                      bool writes) {
  const party_ref me = party_of(one, what);
  memory_.touch(one.clock, {one.at, me}, begin, bytes, writes,
                [&](const trespass& t) { tell(*me, t); });
}

void adversary::do_notes(const item& one, const std::vector<stored_note>& notes) {
  for (const stored_note& n : notes) {
    std::string_view done = "leasing";
    if (n.change == block_change::taken) done = "giving out";
    if (n.change == block_change::freed) done = "taking back";
    const std::string who = fmt::format(
        "pool '{}' ({} {} bytes{}{})", n.pool, done, n.bytes,
        one.on ? fmt::format(" on stream {}", one.on->number) : "",
        n.change == block_change::freed ? "" : fmt::format(", {}", place_text(n.place)));
    const party_ref me = std::make_shared<const party>(party{who, one.number, true});
    memory_.change(one.clock, {one.at, me}, n.change, n.begin, n.bytes, n.pool,
                   [&](const trespass& t) { tell(*me, t); });
  }
}

void adversary::tell(const party& me, const trespass& what) {
  const std::string& who = me.text;
  const std::string other = what.other ? what.other->text : std::string{};
  switch (what.what) {
    case trespass::kind::race: {
      // The one that was asked for first is the one that the other should have waited for.
      const bool first = me.asked < what.other->asked;
      notes_.found(
          me.of_a_pool || what.other->of_a_pool ? finding_kind::use_after_free : finding_kind::race,
          fmt::format("{} {} {}; {} {} them, and nothing orders the two; record an event "
                      "behind {} and wait for it before {}",
                      who, verb(what.writes), what.where, other, verb(what.other_writes),
                      first ? who : other, first ? other : who));
      return;
    }
    case trespass::kind::given_back:
      if (what.never_taken) {
        notes_.found(finding_kind::use_after_free,
                     fmt::format("{} {} {}, which nobody has taken from its pool by then; use "
                                 "memory on the stream that took it, or behind that",
                                 who, verb(what.writes), what.where));
        return;
      }
      notes_.found(finding_kind::use_after_free,
                   fmt::format("{} {} {}{}; keep the memory until its last user is done, and "
                               "use it on the stream that took it, or behind that",
                               who, verb(what.writes), what.where,
                               other.empty() ? "" : ", given back by " + other));
      return;
    case trespass::kind::unwritten:
      notes_.found(finding_kind::unwritten_read,
                   fmt::format("{} reads {}, which were never written{}; write them first", who,
                               what.where, other.empty() ? "" : " since " + other));
      return;
  }
}

}  // namespace reprise::sim
