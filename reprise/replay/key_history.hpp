// What a cache remembers of keys that it has no recording of: how often they came, how often their
// capture failed, and whether their recordings were worth their captures.
//
// A recording that is dropped after few replays did not pay for its capture. A key to which that
// happens `churn_limit` times in a row thrashes: it runs eagerly for `churn_hold` uses, and gets
// one more try then. Bounded: the key that was used least recently is forgotten. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "reprise/replay/outcome.hpp"

namespace reprise {

struct key_record {
  std::string step;
  std::uint64_t uses = 0;              // without a recording
  int failures = 0;                    // captures that failed since one succeeded
  int thrashed = 0;                    // recordings in a row that did not pay
  std::uint64_t held_until = 0;        // runs eagerly for churn until so many uses
  std::size_t refused_bytes = 0;       // what the budget did not admit; 0: nothing
  std::shared_ptr<const reason> last;  // of its last eager run, told again while it stays the same
  std::vector<breach> differs;         // from its nearest neighbour, when it was missed last
};

class key_history {
 public:
  static constexpr std::size_t most_keys = 4096;
  static constexpr std::uint64_t paid_off = 8;      // replays that pay for a capture
  static constexpr std::uint64_t churn_hold = 256;  // uses

  // Of the key with this hash; two keys of one hash share it, which costs one of them a capture.
  key_record& of(std::uint64_t hash);
  // A recording of the key was dropped after so many replays, its first run among them.
  void dropped(std::uint64_t hash, std::uint64_t replays, int churn_limit);
  std::size_t keys() const { return records_.size(); }
  // Of the keys in the order of their last use, the latest first.
  std::vector<const key_record*> latest(std::size_t most) const;

 private:
  struct kept {
    key_record record;
    std::list<std::uint64_t>::iterator place;
  };

  std::unordered_map<std::uint64_t, kept> records_;
  std::list<std::uint64_t> by_use_;  // the last used first
};

}  // namespace reprise
