// Enqueueing: what the calls of the seam leave to be done, and behind what.
#include "reprise/sim/adversary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise::sim {

namespace {

// FNV-1a over words: a changed source differs in some byte, and each word counts.
std::uint64_t hash_of(const std::byte* from, std::size_t bytes) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, from + i, std::min(sizeof word, bytes - i));
    hash = (hash ^ word) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

// Some seeds are near to how a real GPU behaves, and some go as far as the rules allow.
adversary::temper adversary::temper_of(dice& seed) {
  constexpr unsigned parts[] = {0, 8, 40, 128, 255};
  temper made{};
  made.eagerness = parts[seed.below(5)];
  made.hand_overs = parts[1 + seed.below(4)];
  made.faults = parts[seed.below(4)];
  made.reuse = parts[seed.below(5)];
  made.only_needed = seed.chance(64);
  constexpr pick picks[] = {pick::any, pick::any, pick::oldest, pick::newest, pick::by_rank};
  made.next = picks[seed.below(5)];
  return made;
}

adversary::adversary(const adversary_options& options, std::string name)
    : options_{options},
      name_{std::move(name)},
      dice_{options.seed},
      temper_{temper_of(dice_)},
      notes_{options.into},
      turns_{[this] { attend(); }, [this] { leave(); }} {
  attend();
  host_at_ = new_lane();
}

adversary::~adversary() {
  leave();
}

// Of several devices that one thread uses, the last one that it called is attended to.
void adversary::attend() {
  this_threads_turn = {&adversary::yield, this};
  listens_to_faults = this;
}

void adversary::leave() {
  if (this_threads_turn.scheduler == this) this_threads_turn = {};
  if (listens_to_faults == this) listens_to_faults = nullptr;
}

bool adversary::is_pageable(const std::byte* begin, std::size_t bytes) const {
  return !memory_.owns(begin, bytes) && !memory_.strays(begin, bytes);
}

void adversary::open(stream_id stream, std::uint64_t number, place from) {
  auto made = std::make_shared<line>();
  made->number = number;
  made->at = new_lane();
  made->rank = dice_.next();
  notes_.add(
      fmt::format("thread {} creates stream {} ({})", turns_.number(), number, place_text(from)));
  lines_.emplace(stream, std::move(made));
}

void adversary::close(stream_id stream) noexcept {
  if (is_stranger("destroy stream")) return;
  const auto found = lines_.find(stream);
  if (found == lines_.end()) return;
  try {
    finish(stream, place::current());
  } catch (const std::exception& failure) {
    report_error(failure.what());
  }
  free_lanes_.push_back(found->second->at);
  lines_.erase(stream);
}

lane_place adversary::new_lane() {
  if (free_lanes_.empty()) return {lanes_++, 0};
  const lane_place reused = free_lanes_.back();
  free_lanes_.pop_back();
  return reused;
}

// Without its work; behind the tail of the stream, which it becomes.
item_ref adversary::next_on(const std::shared_ptr<line>& on) {
  const item_ref made = std::make_shared<item>();
  made->number = ++items_;
  made->on = on;
  made->earliest = std::max(host_time_, on->earliest);
  on->clock.join(known_);
  ++on->at.step;
  on->clock.advance_to(on->at);
  made->at = on->at;
  made->clock = on->clock;
  for (const item_ref& before : on->tail) put_behind(made, before);
  on->tail.assign(1, made);
  return made;
}

void adversary::put_behind(const item_ref& one, const item_ref& before) {
  if (before->done) {
    one->earliest = std::max(one->earliest, before->end);
    return;
  }
  ++one->waits_for;
  one->before.push_back(before);
  before->then.push_back(one);
}

void adversary::enqueue(const item_ref& made) {
  pending_.emplace(made->number, made.get());
  ++progress_;
  idle_pauses_ = 0;
  if (made->waits_for == 0) ready_.push_back(made);
}

void adversary::record(event_id event, stream_id stream, place from) {
  const auto& on = lines_.at(stream);
  on->clock.join(known_);
  marks_[event] = {on->tail, on->clock};
  notes_.add(fmt::format("thread {} records an event on stream {} ({})", turns_.number(),
                         on->number, place_text(from)));
}

void adversary::wait(event_id event, stream_id stream, place from) {
  const auto found = marks_.find(event);
  if (found == marks_.end()) return;
  const auto& on = lines_.at(stream);
  notes_.add(fmt::format("thread {} lets stream {} wait for an event ({})", turns_.number(),
                         on->number, place_text(from)));
  if (REPRISE_MUTANT(sim_event_is_not_waited_for)) return;
  for (const item_ref& before : found->second.tail) put_at_the_end(*on, before);
  on->clock.join(found->second.clock);
  // A stream that only waits would carry along all that it ever waited for.
  constexpr std::size_t most = 16;
  if (on->tail.size() > most) enqueue(next_on(on));
}

// What comes next on the stream comes behind it.
void adversary::put_at_the_end(line& on, const item_ref& before) {
  std::erase_if(on.tail, [&](const item_ref& one) {
    if (one->done) on.earliest = std::max(on.earliest, one->end);
    return one->done;
  });
  if (before->done) {
    on.earliest = std::max(on.earliest, before->end);
  } else if (std::ranges::find(on.tail, before) == on.tail.end()) {
    on.tail.push_back(before);
  }
}

source_print adversary::print_of(const work& what) const {
  if (!options_.watches_memory || what.kind != work_kind::copy) return {};
  if (!memory_.owns(what.copy.from, what.copy.bytes) || !memory_.is_pinned(what.copy.from)) {
    return {};
  }
  return {hash_of(what.copy.from, what.copy.bytes),
          memory_.writers_of(what.copy.from, what.copy.bytes), true};
}

void adversary::run(stream_id stream, const work& what) {
  const auto& on = lines_.at(stream);
  const item_ref made = next_on(on);
  work kept = what;
  bool to_pageable = false;
  if (what.kind == work_kind::copy && what.copy.bytes != 0) {
    if (is_pageable(what.copy.from, what.copy.bytes)) {
      // Staged at the call: the source may be reused at once.
      made->staged.assign(what.copy.from, what.copy.from + what.copy.bytes);
      if (!REPRISE_MUTANT(sim_pageable_source_is_read_late)) kept.copy.from = made->staged.data();
    }
    to_pageable = is_pageable(what.copy.to, what.copy.bytes);
  }
  made->what = std::make_shared<const stored_work>(kept);
  made->source = print_of(kept);
  notes_.add(fmt::format("thread {} enqueues {}", turns_.number(), text_of(*made, what)));
  enqueue(made);
  if (!to_pageable) return;
  // As CUDA does: the call returns when the bytes are there.
  wait_for([&] { return made->done; }, {made}, name_of(what.kind), what.place);
  passed({{made}, made->clock});
}

void adversary::launch(const std::shared_ptr<executable_body>& body, stream_id stream, place from) {
  bury();
  const auto& on = lines_.at(stream);
  executable_line& of = executables_[body.get()];
  const auto state = std::make_shared<launch_state>();
  state->body = body;
  state->number = ++launches_;
  notes_.add(fmt::format("thread {} launches executable as launch {} on stream {} ({})",
                         turns_.number(), state->number, on->number, place_text(from)));
  if (of.last && !of.last->done) reached("sim: a launch waited for its executable");
  // An executable runs one launch at a time.
  if (of.last && !REPRISE_MUTANT(sim_launches_of_one_executable_overlap)) {
    put_at_the_end(*on, of.last);
    on->clock.join(of.last->clock);
  }
  const item_ref begin = next_on(on);
  const item_ref end = next_on(on);
  begin->of = state;
  end->of = state;
  add_nodes(state, begin, end, of);
  enqueue(begin);
  enqueue(end);
  of.last = end;
}

// Each node goes on in the lane of a predecessor that nobody else has gone on in, else in a lane
// of its own; lanes last from launch to launch, since these never overlap.
void adversary::add_nodes(const std::shared_ptr<launch_state>& of, const item_ref& begin,
                          const item_ref& end, executable_line& lanes) {
  const std::vector<launched_node> nodes = of->body->as_launched(of->holder);
  const std::vector<graph_body::node>& rows = of->holder->nodes;
  std::vector<item_ref> made;
  std::vector<std::size_t> chain_of(nodes.size());
  std::vector<std::size_t> ends;  // of chains: the index of the last node
  std::vector<bool> has_successor(nodes.size(), false);
  made.reserve(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const item_ref one = std::make_shared<item>();
    one->number = ++items_;
    one->on = begin->on;
    one->of = of;
    one->earliest = host_time_;
    one->what = nodes[i].what;
    one->driven_by = nodes[i].driven_by;
    one->captured_on = rows[i].captured_on;
    if (!rows[i].notes.empty()) one->node_notes = &rows[i].notes;
    if (one->what) one->source = print_of(one->what->borrow());

    one->clock = begin->clock;
    std::size_t chain = ends.size();
    for (const std::size_t before : rows[i].after) {
      has_successor[before] = true;
      if (!REPRISE_MUTANT(sim_node_runs_before_its_edge)) put_behind(one, made[before]);
      one->clock.join(made[before]->clock);
      if (chain == ends.size() && ends[chain_of[before]] == before) chain = chain_of[before];
    }
    if (rows[i].after.empty()) put_behind(one, begin);
    if (chain == ends.size()) ends.push_back(i);
    ends[chain] = i;
    chain_of[i] = chain;
    if (lanes.lanes.size() <= chain) lanes.lanes.push_back(new_lane());
    lane_place& lane = lanes.lanes[chain];
    ++lane.step;
    one->at = lane;
    one->clock.advance_to(lane);
    made.push_back(one);
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!has_successor[i]) {
      put_behind(end, made[i]);
      end->clock.join(made[i]->clock);
    }
    enqueue(made[i]);
  }
  begin->on->clock.join(end->clock);
}

// What it holds may call the device when it goes, so it goes when no work is running.
void adversary::retire(std::shared_ptr<executable_body> body) noexcept {
  if (is_stranger("destroy executable")) {
    ended_.push_back(std::move(body));
    return;
  }
  if (executables_.contains(body.get())) retired_.push_back(std::move(body));
  bury();
}

void adversary::bury() noexcept {
  if (inside_ != nullptr) return;
  const std::vector<std::shared_ptr<const void>> ended = std::exchange(ended_, {});
  std::vector<std::shared_ptr<executable_body>> gone;
  std::erase_if(retired_, [&](std::shared_ptr<executable_body>& body) {
    const auto found = executables_.find(body.get());
    const item_ref& last = found->second.last;
    if (last && !last->done) return false;
    // Whoever sees that it is gone knows that its launches are done.
    if (last) known_.join(last->clock);
    for (const lane_place& lane : found->second.lanes) free_lanes_.push_back(lane);
    executables_.erase(found);
    gone.push_back(std::move(body));
    return true;
  });
}

void adversary::settle() noexcept {
  while (!retired_.empty()) {
    std::vector<item_ref> ends;
    for (const auto& body : retired_) {
      if (const item_ref& last = executables_.at(body.get()).last) ends.push_back(last);
    }
    try {
      wait_for([&] { return all_done(ends); }, ends, "settle", place::current());
    } catch (const std::exception& failure) {
      report_error(failure.what());
      return;
    }
    bury();
  }
}

void adversary::captured(stream_id stream, const work& what) {
  notes_.add(fmt::format("thread {} captures '{}' on stream {} ({})", turns_.number(), what.label,
                         lines_.at(stream)->number, place_text(what.place)));
}

void adversary::capture_changed(stream_id origin, bool open) noexcept {
  const auto found = lines_.find(origin);
  if (found == lines_.end()) return;
  notes_.add(fmt::format("thread {} {} a capture on stream {}", turns_.number(),
                         open ? "begins" : "ends", found->second->number));
}

// A place on the stream, behind what is there, that nothing gets past.
void adversary::hold(stream_id stream) {
  const auto& on = lines_.at(stream);
  if (on->hold) return;
  on->hold = next_on(on);
  on->hold->held = true;
  enqueue(on->hold);
  notes_.add(fmt::format("stream {} is held", on->number));
}

void adversary::let_go(stream_id stream) {
  line& on = *lines_.at(stream);
  if (!on.hold) return;
  std::exchange(on.hold, nullptr)->held = false;
  ++progress_;
  notes_.add(fmt::format("stream {} is released", on.number));
}

void adversary::slow(stream_id stream, std::uint64_t factor) {
  lines_.at(stream)->slowness = factor;
}

void adversary::lasts(std::string_view label, std::uint64_t units) {
  durations_.insert_or_assign(std::string{label}, units);
}

}  // namespace reprise::sim
