#include "reprise/tap/flights.hpp"

#include <algorithm>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

// Of one plan; even, since it is brought 16 bytes at a time.
std::size_t plan_words_of(const monitor_options& options) {
  const std::size_t words = options.most_points * (descriptor_words + 1) + 2 * options.most_runs;
  return words + words % 2;
}

}  // namespace

flights::flights(device_ref device, const monitor_options& options,
                 std::shared_ptr<const ring_memory> ring, tap_counts& counts)
    : device_{device},
      options_{options},
      ring_{std::move(ring)},
      counts_{counts},
      account_{options.ring_bytes, options.slots},
      words_per_plan_{plan_words_of(options)},
      words_{device, words_per_plan_ * (options.flights + 1)},
      all_(options.flights) {
  std::ranges::fill(words_.data(), words_.data() + words_.size(), std::uint64_t{0});
  for (std::size_t i = 0; i < all_.size(); ++i) {
    all_[i].words = {words_.data() + i * words_per_plan_, words_per_plan_};
    all_[i].plan.reserve(options.most_points, options.most_runs);
    all_[i].points.reserve(options.most_points);
    all_[i].state.reserve(options.most_points);
    all_[i].bytes.reserve(options.most_points);
  }
}

flight& flights::begin(std::span<const tapped_point> points,
                       std::span<const request_rows> requests) {
  flight& made = at(count_);
  made.plan.make(points, requests, options_.markers);
  made.points.assign(points.begin(), points.end());
  made.state.assign(made.plan.publications().size(), found::not_yet);
  made.bytes.assign(made.plan.publications().size(), 0);
  made.is = flight::phase::promised;
  made.passed = false;
  made.stream.reset();
  made.direct.clear();
  return made;
}

void flights::commit(flight& made) {
  made.number = next_number_++;
  ++count_;
  counts_.planned += made.plan.publications().size();
}

void flights::count_planned(std::vector<point_counts>& points) const {
  for (point_counts& one : points) one.planned = one.published + one.lost;
  for (std::size_t i = 0; i < count_; ++i) {
    const flight& one = all_[(first_ + i) % all_.size()];
    if (one.is == flight::phase::withdrawn) continue;
    for (std::size_t j = 0; j < one.state.size(); ++j) {
      if (one.state[j] != found::not_yet) continue;
      ++points[one.points[one.plan.publications()[j].producer].id].planned;
    }
  }
}

flights::answer flights::promise(std::span<const tapped_point> points,
                                 std::span<const request_rows> requests) {
  if (is_full()) return answer::full;
  flight& made = begin(points, requests);
  const std::size_t publications = made.plan.publications().size();
  if (publications == 0) return answer::nothing;
  if (made.plan.bytes() > options_.staging_bytes) return answer::never;
  if (made.plan.words(points.size()) > words_per_plan_) return answer::never;
  switch (account_.room_for(made.plan.bytes(), publications)) {
    case room::never_fits: return answer::never;
    case room::fits_after_flush: return answer::full;
    case room::fits: break;
  }
  made.plan.place(account_);
  account_.promise(made.plan.bytes(), publications);
  counts_.reserved_bytes += made.plan.bytes();
  commit(made);
  return answer::fits;
}

bool flights::add_direct(const tapped_point& one, std::span<const request_rows> requests,
                         std::vector<std::byte> bytes, std::uint64_t most) {
  if (is_full()) return false;
  flight& made = begin({&one, 1}, requests);
  made.direct = std::move(bytes);
  std::ranges::fill(made.state, found::whole);
  for (std::size_t i = 0; i < made.bytes.size(); ++i) {
    made.bytes[i] = std::min(made.plan.publications()[i].bytes, most);
  }
  commit(made);
  counts_.published += made.state.size();
  counts_.direct += made.state.size();
  for (std::size_t i = 0; i < made.state.size(); ++i) ++counts_of(made, i).published;
  return true;
}

void flights::launched(flight& one, stream_ref on, std::uint64_t step, replay_id replay) {
  one.stream = on;
  one.step = step;
  one.replay = replay;
  one.is = flight::phase::launched;
}

void flights::withdraw(flight& one) {
  ++counts_.withdrawn;
  const std::size_t publications = one.plan.publications().size();
  counts_.planned -= publications;
  counts_.reserved_bytes -= one.plan.bytes();
  const planned_publication& first = one.plan.publications().front();
  const bool is_last = &one == &newest();
  if (is_last &&
      account_.withdraw(one.plan.bytes(), publications, first.position, first.sequence)) {
    --count_;
    return;
  }
  one.is = flight::phase::withdrawn;
}

void flights::look() {
  for (std::size_t i = 0; i < count_; ++i) look_at(at(i));
  // The oldest is over when a later one of its stream has published: whoever published after it
  // runs behind it.
  for (std::size_t i = 0; i < count_; ++i) {
    flight& one = at(i);
    if (is_over(one) || one.is != flight::phase::launched) continue;
    for (std::size_t later = i + 1; later < count_ && !one.passed; ++later) {
      const flight& other = at(later);
      one.passed = other.stream && *other.stream == *one.stream && has_published(other);
    }
    if (!one.passed) continue;
    look_at(one);  // once more, behind what was seen
    for (std::size_t j = 0; j < one.state.size(); ++j) {
      if (one.state[j] == found::not_yet) lose(one, j, nullptr);
    }
  }
}

void flights::look_at(flight& one) {
  if (one.is != flight::phase::launched) return;
  for (std::size_t i = 0; i < one.state.size(); ++i) {
    if (one.state[i] == found::not_yet) look_at(one, i);
  }
}

void flights::look_at(flight& one, std::size_t i) {
  const planned_publication& planned = one.plan.publications()[i];
  const std::uint64_t slot = account_.slot_of(planned.sequence);
  const std::uint64_t word = ring_->look(slot);
  if ((word & publication::ready) == 0) return;
  const std::uint64_t tag = account_.tag_of(planned.sequence);
  const std::uint64_t ahead = (publication::tag_of(word) - tag) % publication::laps;
  if (ahead != 0 && !REPRISE_MUTANT(publication_tag_is_not_checked)) {
    // An older lap's word is still there; or one of a lap that is not planned yet, since its slot
    // is this one's until this one is over: nobody shall take it for that lap's.
    if (ahead >= publication::laps / 2) return;
    if (!REPRISE_MUTANT(rogue_word_is_left_for_its_lap)) ring_->clear(slot);
    lose(one, i, &tap_counts::overwritten);
    return;
  }
  if (!REPRISE_MUTANT(host_does_not_acquire_a_publication)) {
    device_.api().acquired(ring_->place_of(slot));
  }
  const std::uint64_t bytes = publication::bytes_of(word);
  const std::uint64_t row_bytes = one.points[planned.producer].row_bytes;
  const bool was_clamped = (word & publication::clamped) != 0;
  const bool may_be_less =
      !planned.exact || was_clamped || REPRISE_MUTANT(publication_of_fewer_rows_is_taken);
  const bool fits = bytes <= planned.bytes && (row_bytes == 0 || bytes % row_bytes == 0) &&
                    (bytes == planned.bytes || may_be_less);
  const bool same_point = publication::point_of(word) == one.points[planned.producer].id;
  if (!fits || (!same_point && !REPRISE_MUTANT(publication_point_is_not_checked))) {
    lose(one, i, &tap_counts::mismatched);
    return;
  }
  if (was_clamped) ++counts_.clamped;
  one.state[i] = found::whole;
  one.bytes[i] = bytes;
  ++counts_.published;
  counts_.published_bytes += planned.reserved;
  ++counts_of(one, i).published;
}

void flights::lose(flight& one, std::size_t i, std::uint64_t tap_counts::*why) {
  one.state[i] = found::lost;
  ++counts_.lost;
  if (why != nullptr) ++(counts_.*why);
  ++counts_of(one, i).lost;
}

bool flights::has_published(const flight& one) const {
  return std::ranges::any_of(one.state, [](found state) { return state == found::whole; }) &&
         !one.is_direct();
}

bool flights::is_over(const flight& one) const {
  if (one.is == flight::phase::withdrawn) return true;
  if (one.is == flight::phase::promised && !one.is_direct()) return false;
  // A word that is not the producer's own says nothing of the producer: it may be still to come,
  // and then it reads its plan words and writes its payload.
  const bool may_come = !one.passed && !REPRISE_MUTANT(lost_publication_is_over_at_once);
  return std::ranges::none_of(one.state, [&](found state) {
    return state == found::not_yet || (state == found::lost && may_come);
  });
}

void flights::probe_oldest() {
  if (count_ == 0) return;
  flight& oldest = at(0);
  if (oldest.is != flight::phase::launched || is_over(oldest) || !oldest.stream) return;
  const auto here = std::source_location::current();
  const stream_id stream = oldest.stream->id();
  if (!device_.state().is_live(stream)) {
    oldest.passed = true;  // it has waited for its work
    return;
  }
  if (!probe_) probe_.emplace(device_);
  if (probed_ != oldest.number + 1) {
    if (!probe_->record_outside(stream, here)) return;  // captured: asked again later
    probed_ = oldest.number + 1;
  }
  if (probe_->finished(here)) oldest.passed = true;
}

void flights::give_back(std::size_t n) {
  std::uint64_t bytes = 0;
  std::uint64_t publications = 0;
  for (std::size_t i = 0; i < n; ++i) {
    flight& one = at(i);
    if (one.is_direct()) continue;
    bytes += one.plan.bytes();
    publications += one.plan.publications().size();
  }
  account_.give_back(bytes, publications);
}

void flights::pop(std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) at(i).direct.clear();
  first_ = (first_ + n) % all_.size();
  count_ -= n;
}

point_counts& flights::counts_of(const flight& one, std::size_t i) {
  return counts_.points[one.points[one.plan.publications()[i].producer].id];
}

}  // namespace reprise
