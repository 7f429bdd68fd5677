#include "reprise/device/touch_log.hpp"

#include <algorithm>
#include <bit>

namespace reprise {

touch_log::page& touch_log::find(std::uintptr_t number) {
  auto at = pages_.find(number);
  if (at == pages_.end()) {
    if (storage_.size() == pages_.size()) storage_.push_back(std::make_unique<page>());
    order_.push_back(number);
    at = pages_.emplace(number, storage_[pages_.size()].get()).first;
  }
  recent_[number % recent_.size()] = {number, at->second};
  return *at->second;
}

void touch_log::note_long(std::uintptr_t first, std::size_t bytes, bool writes) {
  while (bytes != 0) {
    const std::uintptr_t bit = first % word_bytes;
    const std::size_t here = std::min<std::size_t>(bytes, word_bytes - bit);
    mark(first, (~std::uint64_t{0} >> (word_bytes - here)) << bit, writes);
    first += here;
    bytes -= here;
  }
}

// Runs of set bits, joined across words and pages that follow one another.
void touch_log::append_ranges(bool writes) {
  const std::size_t first_of_kind = ranges_.size();
  for (const std::uintptr_t number : order_) {
    const page& p = *pages_.at(number);
    for (std::uintptr_t w = 0; w < page_words; ++w) {
      std::uint64_t bits = writes ? p.written[w] : p.read[w];
      std::uintptr_t at = number * page_bytes + w * word_bytes;
      while (bits != 0) {
        const int gap = std::countr_zero(bits);
        const int run = std::countr_one(bits >> gap);
        const auto* const begin =
            reinterpret_cast<const std::byte*>(at + static_cast<unsigned>(gap));
        if (ranges_.size() > first_of_kind &&
            ranges_.back().begin + ranges_.back().bytes == begin) {
          ranges_.back().bytes += static_cast<unsigned>(run);
        } else {
          ranges_.push_back({begin, static_cast<unsigned>(run), writes});
        }
        if (gap + run == 64) break;
        at += static_cast<unsigned>(gap + run);
        bits >>= gap + run;
      }
    }
  }
}

std::span<const touched_range> touch_log::taken() {
  ranges_.clear();
  std::ranges::sort(order_);
  append_ranges(false);
  append_ranges(true);
  return ranges_;
}

void touch_log::clear() {
  for (std::size_t i = 0; i < pages_.size(); ++i) *storage_[i] = page{};
  pages_.clear();
  order_.clear();
  ranges_.clear();
  recent_.fill({});
}

}  // namespace reprise
