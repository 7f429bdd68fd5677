#include "reprise/sim/capture.hpp"

#include <algorithm>
#include <utility>

#include "reprise/base/mutant.hpp"

namespace reprise::sim {

capture::capture(stream_id origin, bool with_places)
    : number_{next_capture()}, with_places_{with_places}, branches_{{origin, {0}, {}, 0}} {
  if (with_places_) branches_.front().tail = {add_place({})};
}

std::size_t capture::add_place(std::vector<std::size_t> after) {
  made_.nodes.push_back({node_id::none, nullptr, std::move(after), {}, 0});
  return made_.nodes.size() - 1;
}

std::vector<stream_id> capture::streams() const {
  std::vector<stream_id> all;
  for (const branch& b : branches_) all.push_back(b.stream);
  return all;
}

node_id capture::add(stream_id stream, std::uint64_t number, const work& what) {
  const std::size_t i = index_of(stream);
  const node_id id = next_node();
  made_.nodes.push_back(
      {id, std::make_shared<const stored_work>(what), branches_[i].tail, {}, number});
  branches_[i].tail = {made_.nodes.size() - 1};
  branches_[i].last_work = ++branches_[i].before[i];
  return id;
}

void capture::record(event_id event, stream_id stream) {
  const branch& b = branches_[index_of(stream)];
  marks_[event] = {b.before, b.tail};
}

void capture::wait(event_id event, stream_id stream) {
  std::size_t i = index_of(stream);
  if (i == branches_.size()) branches_.push_back({stream, clock(i + 1, 0), {}, 0});
  const point& mark = marks_.at(event);
  branch& b = branches_[i];
  if (b.before.size() < mark.before.size()) b.before.resize(mark.before.size(), 0);
  for (std::size_t k = 0; k < mark.before.size(); ++k) {
    b.before[k] = std::max(b.before[k], mark.before[k]);
  }
  ++b.before[i];
  for (const std::size_t node : mark.tail) {
    if (REPRISE_MUTANT(sim_capture_leaves_out_joins) && b.last_work != 0) break;
    if (std::ranges::find(b.tail, node) == b.tail.end()) b.tail.push_back(node);
  }
  if (with_places_) b.tail = {add_place(std::move(b.tail))};
}

void capture::note(stream_id stream, const block_note& what) {
  const std::vector<std::size_t>& tail = branches_[index_of(stream)].tail;
  const std::size_t at = what.change == block_change::lent ? 0 : tail.front();
  made_.nodes[at].notes.push_back(
      {what.change, what.begin, what.bytes, std::string{what.pool}, what.place});
}

capture_place capture::place_of(stream_id stream) const {
  const std::size_t i = index_of(stream);
  return {number_, i, branches_[i].before[i]};
}

bool capture::precedes(const capture_place& earlier, stream_id stream) const {
  if (earlier.capture != number_) return false;
  const clock& before = branches_[index_of(stream)].before;
  return earlier.steps == 0 ||
         (earlier.branch < before.size() && before[earlier.branch] >= earlier.steps);
}

void capture::invalidate(std::string cause) {
  if (cause_.empty()) cause_ = std::move(cause);
}

stream_id capture::unjoined() const {
  const clock& known = branches_.front().before;
  for (std::size_t i = 1; i < branches_.size(); ++i) {
    const std::size_t seen = i < known.size() ? known[i] : 0;
    if (seen < branches_[i].last_work) return branches_[i].stream;
  }
  return stream_id::none;
}

std::size_t capture::index_of(stream_id stream) const {
  const auto found = std::ranges::find(branches_, stream, &branch::stream);
  return static_cast<std::size_t>(found - branches_.begin());
}

}  // namespace reprise::sim
