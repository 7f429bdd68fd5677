#include "reprise/device/touch_log.hpp"

#include <algorithm>
#include <bit>

namespace reprise {

touch_log::page& touch_log::find(std::uintptr_t number) {
  auto at = pages_.find(number);
  if (at == pages_.end()) {
    if (storage_.size() == pages_.size()) storage_.push_back(std::make_unique<page>());
    page* const next = storage_[pages_.size()].get();
    order_.push_back({number, next});
    at = pages_.emplace(number, next).first;
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
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;  // of the run that may go on
  const auto close = [&] {
    if (begin == end) return;
    ranges_.push_back({reinterpret_cast<const std::byte*>(begin), end - begin, writes});
  };
  for (const place& each : order_) {
    std::uintptr_t at = each.number * page_bytes;
    for (const std::uint64_t word : writes ? each.at->written : each.at->read) {
      if (word == ~std::uint64_t{0} && at == end) {
        end += word_bytes;
      } else {
        unsigned bit = 0;
        for (std::uint64_t bits = word; bits != 0;) {
          bit += static_cast<unsigned>(std::countr_zero(bits));
          const auto run = static_cast<unsigned>(std::countr_one(word >> bit));
          if (at + bit != end) {
            close();
            begin = end = at + bit;
          }
          end += run;
          bit += run;
          bits = bit < word_bytes ? word >> bit : 0;
        }
      }
      at += word_bytes;
    }
  }
  close();
}

std::span<const touched_range> touch_log::taken() {
  ranges_.clear();
  std::ranges::sort(order_, {}, &place::number);
  append_ranges(false);
  append_ranges(true);
  return ranges_;
}

void touch_log::clear() {
  for (const place& each : order_) *each.at = page{};
  pages_.clear();
  order_.clear();
  ranges_.clear();
  recent_.fill({});
}

}  // namespace reprise
