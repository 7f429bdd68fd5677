#include "reprise/device/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "reprise/device/slab_store.hpp"

namespace reprise {

namespace {

constexpr std::size_t granule = 256;  // what cudaMalloc guarantees, and vector loads need less
constexpr std::size_t most =
    std::numeric_limits<std::size_t>::max() / 2;  // rounds without wrapping

std::size_t rounded(std::size_t bytes) {
  return std::max(granule, (bytes + granule - 1) / granule * granule);
}

// Sizes that no device has, such as a product of extents that wrapped.
void require_size(device_ref device, std::size_t bytes, std::source_location place) {
  if (bytes <= most) return;
  throw out_of_memory{{"allocate", device.name(), place}, bytes, device.memory(place).free};
}

}  // namespace

// Invariant: the free spans never overlap a live block or each other, and lie inside one slab each.
class pool_state {
 public:
  pool_state(device_ref device, std::string label) : device_{device}, label_{std::move(label)} {}

  // The last block is gone: the slabs go back once the streams that freed into them have passed.
  ~pool_state() {
    if (slabs_.empty()) return;
    std::set<stream_id> streams;
    for (const auto& [at, s] : free_) streams.insert(s.last);
    streams.erase(stream_id::none);
    device_.state().slabs->retire({std::move(label_), std::move(slabs_), std::move(streams)});
  }

  pool_state(const pool_state&) = delete;
  pool_state& operator=(const pool_state&) = delete;

  std::byte* allocate(std::size_t bytes, stream_ref stream, std::source_location place) {
    require_size(device_, bytes, place);
    const std::size_t size = rounded(bytes);
    const std::lock_guard lock{guard_};
    auto fit = first_fit(size, stream.id());
    if (fit == free_.end() && !stream.capturing()) fit = fit_of_others(size, stream, place);
    if (fit == free_.end()) fit = grow(size, place);
    return carve(fit, size);
  }

  void release(std::byte* begin, std::size_t bytes, stream_id stream) noexcept {
    const std::lock_guard lock{guard_};
    const std::size_t size = rounded(bytes);
    used_ -= size;
    merge(free_.emplace(place_of(begin), span{size, stream}).first);
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
  struct span {
    std::size_t bytes;
    stream_id last;  // freed in the order of this stream; none: never used
  };
  // By slab in the order of growth, then by address: the layout may not depend on where the device
  // puts its slabs.
  using span_place = std::pair<std::size_t, std::byte*>;
  using free_map = std::map<span_place, span>;

  free_map::iterator first_fit(std::size_t size, stream_id stream) {
    return std::ranges::find_if(free_, [&](const auto& entry) {
      const span& s = entry.second;
      return s.bytes >= size && (s.last == stream || s.last == stream_id::none);
    });
  }

  // The first span of another stream that `stream` can be ordered after; it is when this returns.
  free_map::iterator fit_of_others(std::size_t size, stream_ref stream,
                                   std::source_location place) {
    return std::ranges::find_if(free_, [&](const auto& entry) {
      const span& s = entry.second;
      return s.bytes >= size && device_.state().order_after(s.last, stream, place);
    });
  }

  free_map::iterator grow(std::size_t size, std::source_location place) {
    slabs_.reserve(slabs_.size() + 1);
    const slab fresh = device_.state().slabs->lease(size, place);
    slabs_.push_back(fresh);
    const span_place all{slabs_.size() - 1, fresh.begin};
    return free_.emplace(all, span{fresh.bytes, stream_id::none}).first;
  }

  std::byte* carve(free_map::iterator from, std::size_t size) {
    const auto [at, s] = *from;
    free_.erase(from);
    if (s.bytes > size) {
      free_.emplace(span_place{at.first, at.second + size}, span{s.bytes - size, s.last});
    }
    used_ += size;
    return at.second;
  }

  span_place place_of(std::byte* begin) const {
    const auto home = std::ranges::find_if(
        slabs_, [&](const slab& s) { return begin >= s.begin && begin < s.begin + s.bytes; });
    return {static_cast<std::size_t>(home - slabs_.begin()), begin};
  }

  void merge(free_map::iterator at) {
    const auto joins = [&](free_map::iterator low, free_map::iterator high) {
      const auto& [home, begin] = low->first;
      return span_place{home, begin + low->second.bytes} == high->first &&
             low->second.last == high->second.last;
    };
    if (const auto next = std::next(at); next != free_.end() && joins(at, next)) {
      at->second.bytes += next->second.bytes;
      free_.erase(next);
    }
    if (at != free_.begin()) {
      if (const auto before = std::prev(at); joins(before, at)) {
        before->second.bytes += at->second.bytes;
        free_.erase(at);
      }
    }
  }

  device_ref device_;
  std::string label_;
  mutable std::mutex guard_;
  std::vector<slab> slabs_;
  free_map free_;
  std::size_t used_ = 0;
};

pool::pool(device_ref device, std::string label)
    : state_{std::make_shared<pool_state>(device, std::move(label))} {}

device_ref pool::device() const {
  return state_->device();
}
const std::string& pool::label() const {
  return state_->label();
}
std::size_t pool::bytes() const {
  return state_->bytes();
}
std::size_t pool::used() const {
  return state_->used();
}

block::block(pool& from, std::size_t bytes, stream_ref stream, std::source_location place)
    : pool_{from.state_}, bytes_{bytes}, stream_{stream.id()} {
  if (!(stream.device() == pool_->device())) {
    throw usage_error{
        fmt::format("pool '{}' is of {}, the stream of {}; use a stream of the pool's "
                    "device",
                    pool_->label(), pool_->device().name(), stream.device().name())};
  }
  data_ = pool_->allocate(bytes, stream, place);
}

block::~block() {
  if (data_ != nullptr) pool_->release(data_, bytes_, stream_);
}

pinned_block::pinned_block(device_ref device, std::size_t bytes, std::source_location place)
    : owner_{&device.state()}, bytes_{bytes} {
  require_size(device, bytes, place);
  data_ = device.api().allocate(memory_kind::pinned, std::max<std::size_t>(bytes, 1), place);
  owner_->pinned_bytes += bytes_;
}

pinned_block::~pinned_block() {
  if (data_ == nullptr) return;
  owner_->pinned_bytes -= bytes_;
  owner_->api->release(memory_kind::pinned, data_);
}

}  // namespace reprise
