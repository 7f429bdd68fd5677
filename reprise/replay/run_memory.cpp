#include "reprise/replay/run_memory.hpp"

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

constexpr std::size_t alignment = 256;

}  // namespace

std::size_t run_memory::taken_for(std::size_t bytes) {
  return std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
}

run_memory::run_memory(pool& from, stream_ref stream) : pool_{&from}, stream_{stream} {}

run_memory::run_memory(pool& from, stream_ref stream, std::size_t bytes, std::source_location place)
    : pool_{&from}, stream_{stream}, fixed_{true} {
  blocks_.emplace_back(*pool_, std::max(bytes, alignment), stream_, place);
}

run_memory::run_memory(pool& from, stream_ref stream, const placed_memory& in)
    : pool_{&from},
      stream_{stream},
      fixed_{true},
      placed_kept_{area{in.kept}},
      placed_scratch_{area{in.scratch}} {}

void run_memory::refuse(std::source_location place) const {
  throw capture_error{{"scratch", pool_->device().name(), place},
                      "the body asks for more memory than in its warm-up; take the same memory "
                      "in every run of the same shapes"};
}

std::byte* run_memory::take_placed(area& from, std::size_t size, std::source_location place) {
  if (size > from.memory.size() - from.filled) refuse(place);
  std::byte* const begin = from.memory.data() + from.filled;
  from.filled += size;
  needed_ += size;
  return begin;
}

std::byte* run_memory::keep(std::size_t bytes, std::source_location place) {
  kept_ += taken_for(bytes);
  return placed_kept_ ? take_placed(*placed_kept_, taken_for(bytes), place) : take(bytes, place);
}

std::byte* run_memory::take(std::size_t bytes, std::source_location place) {
  const std::size_t size = taken_for(bytes);
  if (placed_scratch_) return take_placed(*placed_scratch_, size, place);
  if (blocks_.empty() || filled_ + size > blocks_.back().bytes()) {
    if (fixed_) refuse(place);
    const std::size_t grown = blocks_.empty() ? 0 : 2 * blocks_.back().bytes();
    // The body may have forked: its branches, too, may use what is taken now.
    blocks_.push_back(block::fresh(*pool_, std::max(size, grown), stream_, place));
    filled_ = 0;
  }
  std::byte* begin = blocks_.back().data() + filled_;
  filled_ += size;
  needed_ += size;
  return begin;
}

std::span<std::byte> run_memory::workspace(std::size_t bytes, std::span<std::byte>& held,
                                           std::source_location place) {
  if (REPRISE_MUTANT(branches_share_a_workspace) && !blocks_.empty() &&
      blocks_.front().bytes() >= bytes) {
    return {blocks_.front().data(), bytes};
  }
  if (held.size() < bytes) {
    held = {take(bytes, place), bytes};
    workspaces_ += taken_for(bytes);
  }
  return held.first(bytes);
}

void run_memory::restart(stream_ref stream) {
  stream_ = stream;
  for (block& b : blocks_) b.freed_on(stream);
  std::size_t total = 0;
  for (const block& b : blocks_) total += b.bytes();
  if (reserved_.bytes() != 0 && reserved_.bytes() >= total) {
    reserved_.freed_on(stream);
    blocks_.clear();
    blocks_.push_back(std::move(reserved_));
    reserved_ = {};
  } else if (blocks_.size() > 1) {
    // One block of the whole size, so that it does not have to grow again.
    blocks_.clear();
    blocks_.emplace_back(*pool_, total, stream_);
  }
  filled_ = 0;
  needed_ = 0;
  kept_ = 0;
  workspaces_ = 0;
}

void run_memory::reserve(std::size_t bytes, stream_ref stream, std::source_location place) {
  const bool is_there =
      reserved_.bytes() >= bytes || (blocks_.size() == 1 && blocks_.front().bytes() >= bytes);
  if (bytes == 0 || is_there) return;
  reserved_ = {};
  reserved_ = block::fresh(*pool_, bytes, stream, place);
}

bool run_memory::contains(const void* begin, std::size_t bytes) const {
  const auto* at = static_cast<const std::byte*>(begin);
  const auto lies_in = [&](const std::byte* memory, std::size_t size) {
    return at >= memory && at + bytes <= memory + size;
  };
  const auto lies_in_area = [&](const std::optional<area>& one) {
    return one && lies_in(one->memory.data(), one->memory.size());
  };
  return lies_in_area(placed_kept_) || lies_in_area(placed_scratch_) ||
         std::ranges::any_of(blocks_, [&](const block& b) { return lies_in(b.data(), b.bytes()); });
}

}  // namespace reprise
