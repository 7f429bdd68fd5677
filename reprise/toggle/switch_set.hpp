// Which switches are on: a sorted set of keys that is compared at each step and changed now and
// then, so its hash is computed once, when it is made.
//
// A value; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace reprise {

// The caller's name of what is switched: a tapped point, say. One key may name works in many
// graphs, and several in one; a work may have several keys and is on while either is.
enum class switch_key : std::uint64_t {};

class switch_set {
 public:
  switch_set() = default;
  switch_set(std::initializer_list<switch_key> keys) : switch_set{std::vector(keys)} {}
  explicit switch_set(std::vector<switch_key> keys) : keys_{std::move(keys)} {
    std::ranges::sort(keys_);
    const auto again = std::ranges::unique(keys_);
    keys_.erase(again.begin(), again.end());
    for (const switch_key key : keys_) {
      hash_ = (hash_ ^ static_cast<std::uint64_t>(key)) * 0x9e37'79b9'7f4a'7c15U;
      hash_ ^= hash_ >> 32;
    }
  }

  bool contains(switch_key key) const { return std::ranges::binary_search(keys_, key); }
  std::size_t size() const { return keys_.size(); }
  bool empty() const { return keys_.empty(); }
  auto begin() const { return keys_.begin(); }
  auto end() const { return keys_.end(); }
  std::uint64_t hash() const { return hash_; }

  bool operator==(const switch_set& other) const {
    return hash_ == other.hash_ && keys_ == other.keys_;
  }

 private:
  std::vector<switch_key> keys_;
  std::uint64_t hash_ = 0x2545'f491'4f6c'dd1dU;
};

}  // namespace reprise
