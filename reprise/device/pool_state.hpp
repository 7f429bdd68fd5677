// What stands behind a pool: its slabs, which spans of them are free, and who may take which.
// For this room's .cpp files.
//
// A span remembers the stream that freed it, and the graph whose replays write it. Whoever comes
// after both may take it: the stream itself at once, another stream behind an event, a branch of a
// capture behind the place of the free, and everybody once the graph is gone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/base/mutex.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/freed_memory.hpp"
#include "reprise/device/ledger.hpp"
#include "reprise/device/slab_store.hpp"

namespace reprise {

// Invariant: the free spans never overlap a live block or each other, and lie inside one slab each.
class pool_state : public std::enable_shared_from_this<pool_state> {
 public:
  pool_state(device_ref device, std::string label) : device_{device}, label_{std::move(label)} {}

  // The last block is gone, and so are the graphs that were given blocks: the slabs go back once
  // the streams that freed into them have passed.
  ~pool_state() {
    device_state& state = device_.state();
    state.ledger->remove(this);
    if (slabs_.empty() || state.ledger->closed()) return;
    std::set<stream_id> streams;
    for (const auto& [at, s] : free_) streams.insert(s.last);
    streams.erase(stream_id::none);
    state.slabs->retire({std::move(label_), std::move(slabs_), std::move(streams)});
  }

  pool_state(const pool_state&) = delete;
  pool_state& operator=(const pool_state&) = delete;

  std::byte* allocate(std::size_t bytes, stream_ref stream, std::source_location place) {
    const std::size_t size = rounded(bytes);
    const bool captured = stream.capturing();
    const std::lock_guard lock{guard_};
    const bool grows = fault_point("pool: grows although it could reuse");
    auto fit = grows ? free_.end() : fit_without_growing(size, stream, captured, place);
    if (fit == free_.end()) fit = grow(size, place);
    return give(fit, bytes, {stream, captured, stream.id()}, place);
  }

  // What no work has used, so that whoever is given it waits for nobody.
  std::byte* allocate_fresh(std::size_t bytes, stream_ref stream, std::source_location place) {
    const std::size_t size = rounded(bytes);
    const bool captured = stream.capturing();
    const std::lock_guard lock{guard_};
    auto fit = std::ranges::find_if(free_, [&](const auto& entry) {
      const span& s = entry.second;
      return s.bytes >= size && s.last == stream_id::none && s.of.token.expired();
    });
    if (fit == free_.end()) fit = grow(size, place);
    return give(fit, bytes, {stream, captured, captured ? stream.id() : stream_id::none}, place);
  }

  void release(std::byte* begin, std::size_t bytes, stream_id stream) noexcept {
    if (device_.state().ledger->closed()) return;
    device_.state().freed->tell(begin, bytes);
    const bool captured = device_.state().is_captured(stream);
    const std::lock_guard lock{guard_};
    const std::size_t size = rounded(bytes);
    used_ -= size;
    span freed{size, stream, {}, {}};
    note_end(begin, size, stream, captured);
    if (const auto given = given_.find(begin); given != given_.end()) {
      freed.of = std::move(given->second);
      freed.of.only = captured;
      given_.erase(given);
    }
    if (captured && !free_in_capture(freed, {device_, stream})) return;
    merge(free_.emplace(place_of(begin), std::move(freed)).first);
  }

  device_ref device() const { return device_; }
  const std::string& label() const { return label_; }
  std::size_t bytes() const {
    const std::lock_guard lock{guard_};
    std::size_t total = 0;
    for (const slab& s : slabs_) total += s.bytes;
    return total;
  }
  std::size_t used() const {
    const std::lock_guard lock{guard_};
    return used_;
  }

 private:
  static constexpr std::size_t granule = 256;  // what cudaMalloc guarantees; vectors need less

  static std::size_t rounded(std::size_t bytes) {
    return std::max(granule, (bytes + granule - 1) / granule * granule);
  }

  // The graph whose replays write a block, while it or an executable of it exists.
  struct graph_mark {
    std::uint64_t capture = 0;
    std::weak_ptr<const capture_token> token;
    bool only = false;  // taken and freed in captures: nobody else has used the block
  };
  struct span {
    std::size_t bytes = 0;
    stream_id last = stream_id::none;  // freed in the order of this stream; none: never used
    graph_mark of;
    capture_place freed_at;  // inside a capture
  };
  // By slab in the order of growth, then by address: the layout may not depend on where the device
  // puts its slabs.
  using span_place = std::pair<std::size_t, std::byte*>;
  using free_map = std::map<span_place, span>;

  // Of the capture that the stream is in; from now on its graph holds this pool.
  graph_mark graph_of(stream_ref captured) {
    device_api& api = device_.api();
    if (!REPRISE_MUTANT(graph_holds_no_pool)) api.keep(captured.id(), shared_from_this());
    return {api.place_in_capture(captured.id()).capture,
            device_.state().ledger->token_of(captured)};
  }

  // What is freed inside a capture was used there, so its graph writes it from now on. False when
  // that could not be noted: the block is then never used again.
  bool free_in_capture(span& freed, stream_ref captured) noexcept {
    try {
      freed.freed_at = device_.api().place_in_capture(captured.id());
      const graph_mark here = graph_of(captured);
      // Taken in another capture whose graph still writes it: both have to go first.
      const std::shared_ptr<const capture_token> there = freed.of.token.lock();
      if (there == nullptr) {
        freed.of = here;
      } else if (freed.of.capture != here.capture) {
        device_.api().keep(captured.id(), there);
      }
      return true;
    } catch (const std::exception& failure) {
      report_error("pool '" + label_ +
                   "': a block freed in a capture is kept for good: " + failure.what());
      return false;
    }
  }

  bool usable_at_once(const span& s, stream_ref stream) const {
    if (!s.of.token.expired() && !REPRISE_MUTANT(pool_lends_what_a_graph_writes)) {
      return s.of.capture == s.freed_at.capture &&
             (REPRISE_MUTANT(pool_reuses_across_branches) ||
              device_.api().precedes(s.freed_at, stream.id()));
    }
    if (s.of.only) return true;  // and those launches are done
    // A replay may come on any stream, behind no eager work of this one.
    if (s.last != stream_id::none && stream.capturing() &&
        !REPRISE_MUTANT(capture_takes_what_eager_work_freed)) {
      return false;
    }
    return s.last == stream.id() || s.last == stream_id::none;
  }

  // Nobody's replays write it, and `stream` comes after those who used it when this returns true.
  bool order_behind(const span& s, stream_ref stream, std::source_location place) const {
    if (!s.of.token.expired()) return false;
    if (usable_at_once(s, stream) || REPRISE_MUTANT(pool_orders_nobody)) return true;
    return device_.state().order_after(s.last, stream, place);
  }

  // A capture takes only what it can have at once.
  free_map::iterator fit_without_growing(std::size_t size, stream_ref stream, bool captured,
                                         std::source_location place) {
    if (const auto fit = fit_at_once(size, stream); fit != free_.end()) {
      if (fit->second.last != stream_id::none) landmark("pool: reused at once");
      return fit;
    }
    if (captured) return free_.end();
    if (const auto fit = fit_of_others(size, stream, place); fit != free_.end()) {
      landmark("pool: reused behind an event");
      return fit;
    }
    const auto joined = join_neighbours(size, stream, place);
    if (joined != free_.end()) landmark("pool: joined neighbours");
    return joined;
  }

  free_map::iterator fit_at_once(std::size_t size, stream_ref stream) {
    return std::ranges::find_if(free_, [&](const auto& entry) {
      return entry.second.bytes >= size && usable_at_once(entry.second, stream);
    });
  }

  // The first span of another stream that `stream` can be ordered after; it is when this returns.
  free_map::iterator fit_of_others(std::size_t size, stream_ref stream,
                                   std::source_location place) {
    return std::ranges::find_if(free_, [&](const auto& entry) {
      return entry.second.bytes >= size && order_behind(entry.second, stream, place);
    });
  }

  // The first neighbours, of whatever streams, that are large enough together: better than growing.
  free_map::iterator join_neighbours(std::size_t size, stream_ref stream,
                                     std::source_location place) {
    for (auto first = free_.begin(); first != free_.end();) {
      auto last = first;
      std::size_t total = 0;
      for (; last != free_.end() && total < size; ++last) {
        const auto& [home, begin] = first->first;
        if (last->first != span_place{home, begin + total}) break;
        if (!order_behind(last->second, stream, place)) break;
        total += last->second.bytes;
      }
      if (total >= size) {
        first->second = {total, stream.id(), {}, {}};
        free_.erase(std::next(first), last);
        return first;
      }
      first = last == first ? std::next(first) : last;
    }
    return free_.end();
  }

  free_map::iterator grow(std::size_t size, std::source_location place) {
    slabs_.reserve(slabs_.size() + 1);
    const slab fresh = device_.state().slabs->lease(size, place);
    slabs_.push_back(fresh);
    note(block_change::idle, stream_id::none, fresh.begin, fresh.bytes, place);
    const span_place all{slabs_.size() - 1, fresh.begin};
    return free_.emplace(all, span{fresh.bytes, stream_id::none, {}, {}}).first;
  }

  struct given_to {
    stream_ref stream;
    bool captured;
    stream_id in_order_of;  // who has to come behind it; none: nobody
  };

  std::byte* give(free_map::iterator fit, std::size_t bytes, const given_to& owner,
                  std::source_location place) {
    if (owner.captured) given_.insert_or_assign(fit->first.second, graph_of(owner.stream));
    std::byte* const taken = carve(fit, rounded(bytes));
    note(block_change::taken, owner.in_order_of, taken, bytes, place);
    return taken;
  }

  std::byte* carve(free_map::iterator from, std::size_t size) {
    const auto [at, s] = *from;
    free_.erase(from);
    if (s.bytes > size) {
      span rest = s;
      rest.bytes -= size;
      free_.emplace(span_place{at.first, at.second + size}, std::move(rest));
    }
    used_ += size;
    return at.second;
  }

  // What a capture took is its graph's, until it is freed in it. What was taken outside and is
  // freed in a capture is its graph's from then on, whose every replay has it from its beginning.
  void note_end(std::byte* begin, std::size_t bytes, stream_id stream, bool captured) const {
    if (REPRISE_MUTANT(pool_notes_no_free)) return;
    const auto given = given_.find(begin);
    const bool by_a_graph = given != given_.end() && !given->second.token.expired();
    const auto here = std::source_location::current();
    if (!captured) {
      if (!by_a_graph) note(block_change::freed, stream, begin, bytes, here);
      return;
    }
    const bool in_this =
        by_a_graph && given->second.capture == device_.api().place_in_capture(stream).capture;
    note(in_this ? block_change::freed : block_change::lent, stream, begin, bytes, here);
  }

  void note(block_change change, stream_id stream, std::byte* begin, std::size_t bytes,
            std::source_location place) const noexcept {
    if constexpr (built_with_checks) {
      device_.api().note(stream, {change, begin, bytes, label_, place});
    }
  }

  span_place place_of(std::byte* begin) const {
    const auto home = std::ranges::find_if(
        slabs_, [&](const slab& s) { return begin >= s.begin && begin < s.begin + s.bytes; });
    return {static_cast<std::size_t>(home - slabs_.begin()), begin};
  }

  // Neighbours that the same may use: freed on one stream, and for the same graph or for none. Two
  // places of one branch are as good as the later one.
  static bool alike(const span& a, const span& b) {
    const bool a_marked = !a.of.token.expired();
    const bool b_marked = !b.of.token.expired();
    if (a.last != b.last || a_marked != b_marked || a.of.only != b.of.only) return false;
    return !a_marked || (a.of.capture == b.of.capture && a.freed_at.capture == b.freed_at.capture &&
                         a.freed_at.branch == b.freed_at.branch);
  }

  void merge(free_map::iterator at) {
    const auto joins = [&](free_map::iterator low, free_map::iterator high) {
      const auto& [home, begin] = low->first;
      return span_place{home, begin + low->second.bytes} == high->first &&
             alike(low->second, high->second);
    };
    const auto join = [&](free_map::iterator low, free_map::iterator high) {
      low->second.bytes += high->second.bytes;
      low->second.freed_at.steps =
          std::max(low->second.freed_at.steps, high->second.freed_at.steps);
      free_.erase(high);
    };
    if (const auto next = std::next(at); next != free_.end() && joins(at, next)) join(at, next);
    if (at != free_.begin()) {
      if (const auto before = std::prev(at); joins(before, at)) join(before, at);
    }
  }

  device_ref device_;
  std::string label_;
  mutable mutex guard_;
  std::vector<slab> slabs_;
  free_map free_;
  std::unordered_map<const std::byte*, graph_mark> given_;  // live blocks taken inside captures
  std::size_t used_ = 0;
};

}  // namespace reprise
