#include "reprise/grad/lane.hpp"

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

using lane_key = std::pair<const device_state*, stream_id>;

// Never destroyed: ops of static storage may outlive any other object.
struct all_lanes {
  std::mutex guard;
  std::map<lane_key, std::weak_ptr<lane>> by_stream;
};
all_lanes& lanes() {
  static auto* const all = new all_lanes;
  return *all;
}

lane_key key_of(device_ref device, stream_id stream) {
  return {&device.state(), stream};
}

}  // namespace

std::shared_ptr<lane> lane::of(stream_ref stream) {
  all_lanes& all = lanes();
  const lane_key key = key_of(stream.device(), stream.id());
  {
    const std::lock_guard held{all.guard};
    if (std::shared_ptr<lane> there = all.by_stream[key].lock()) return there;
  }
  auto made = std::make_shared<lane>(stream);  // calls the device, so outside of the guard
  const std::lock_guard held{all.guard};
  std::weak_ptr<lane>& entry = all.by_stream[key];
  if (std::shared_ptr<lane> there = entry.lock()) return there;
  entry = made;
  return made;
}

lane::lane(stream_ref stream)
    : device_{stream.device()},
      stream_{stream.id()},
      results_{device_, "results of graphed ops"},
      eager_{device_},
      recorder_{device_, eager_} {}

lane::~lane() {
  try {
    drain(std::source_location::current());
  } catch (const error& failed) {
    report_error(failed.what());
  }
  all_lanes& all = lanes();
  const std::lock_guard held{all.guard};
  const auto entry = all.by_stream.find(key_of(device_, stream_));
  if (entry != all.by_stream.end() && entry->second.expired()) all.by_stream.erase(entry);
}

std::shared_ptr<frame_memory> lane::memory_for_a_frame(byte_budget& budget) {
  std::erase_if(shared_, [](const auto& one) { return one->is_empty(); });
  const auto here =
      std::ranges::find_if(shared_, [&](const auto& one) { return one->is_charged_to(budget); });
  if (here == shared_.end()) {
    return shared_.emplace_back(std::make_shared<frame_memory>(device_, budget, "frames"));
  }
  if (!(*here)->is_closed()) return *here;
  return std::make_shared<frame_memory>(device_, budget, "a frame of its own");
}

lane::group* lane::find_group(const group_key& key) {
  const auto at = groups_.find(key);
  return at == groups_.end() ? nullptr : &at->second;
}

lane::group& lane::make_group(const group_key& key, const signature& declared) {
  static std::atomic<std::uint64_t> last{0};
  return groups_.emplace(key, group{++last, declared}).first->second;
}

view<const std::int32_t> lane::zero(site at) {
  if (!zero_) {
    buffer<std::int32_t> made{results_, 1, at.stream, at.place};
    fill(at, write{made}, 0);
    zero_ = std::move(made);
  }
  return zero_->all();
}

void lane::bury(remains one) {
  const std::lock_guard held{dead_guard_};
  dead_.push_back(std::move(one));
  has_dead_.store(true, std::memory_order_release);
}

void lane::take_the_dead(std::source_location place) {
  if (!has_dead_.load(std::memory_order_acquire)) return;
  std::vector<remains> dead;
  {
    const std::lock_guard held{dead_guard_};
    dead.swap(dead_);
    has_dead_.store(false, std::memory_order_release);
  }
  for (remains& one : dead) {
    if (is_captured(one)) {
      bury(std::move(one));  // what is enqueued there now would become a part of that graph
    } else {
      retire(one, place);
      retired_.push_back(std::move(one));
    }
  }
  std::erase_if(groups_, [](const auto& one) {
    return std::ranges::all_of(one.second.slots, [](const auto& slot) { return slot.expired(); });
  });
}

bool lane::is_captured(const remains& one) const {
  const auto captures = [&](stream_id stream) {
    return stream != stream_id::none && device_.state().is_live(stream) &&
           device_.state().is_captured(stream);
  };
  return captures(order_.last()) || std::ranges::any_of(one.recordings, [&](const recording& gone) {
           return captures(gone.last_stream());
         });
}

// What comes next in the pool is ordered behind the last replay, so its memory is free at once.
void lane::retire(remains& one, std::source_location place) noexcept {
  for (recording& gone : one.recordings) {
    try {
      gone.retire(place);
      // Which may have moved gradients aside there, behind all that the lane has seen.
      const stream_id last = gone.last_stream();
      if (last != order_.last() && device_.state().is_live(last)) {
        order_.enter({device_, last}, place);
      }
    } catch (const error& failed) {
      report_error(failed.what());
    }
  }
  // Not all that used it was a recording, nor on the stream that it was taken on.
  if (const std::optional<stream_ref> last = order_.live()) {
    one.memory->freed_on(*last);
    for (block& own : one.blocks) own.freed_on(*last);
  }
  one.memory->give_back(one.kept);
  one.memory->prune();
}

void lane::reap(std::source_location place) {
  take_the_dead(place);
  std::erase_if(retired_, [&](const remains& one) {
    return std::ranges::all_of(one.recordings,
                               [&](const recording& gone) { return gone.retired(place); });
  });
}

void lane::drain(std::source_location place) {
  take_the_dead(place);
  order_.synchronize(place);
  retired_.clear();
}

}  // namespace reprise
