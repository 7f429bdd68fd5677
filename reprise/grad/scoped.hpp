// Spans of a program that change how graphed ops run in them: `suspended`, and `region`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reprise {

// Every call of this thread in the scope runs eagerly; its backward may run outside. Nests.
class suspended {
 public:
  suspended() noexcept;
  ~suspended();
  suspended(const suspended&) = delete;
  suspended& operator=(const suspended&) = delete;

  static bool is_here() noexcept;
};

// The same for all threads of the process.
class suspended_everywhere {
 public:
  suspended_everywhere() noexcept;
  ~suspended_everywhere();
  suspended_everywhere(const suspended_everywhere&) = delete;
  suspended_everywhere& operator=(const suspended_everywhere&) = delete;
};

// A checkpointed span: its activations are dropped and its forwards are run again just before
// their backwards (checkpoint.hpp). Ops of the same work and key (signature::same_work_as) share
// frames across regions, since each backward follows its own recompute; within one region each has
// a frame of its own. Per thread; the innermost counts.
class region {
 public:
  explicit region(std::string label);
  ~region();
  region(const region&) = delete;
  region& operator=(const region&) = delete;

  const std::string& label() const { return label_; }
  // Null outside of all.
  static region* innermost() noexcept;

  // The slot of this op among those of one work and key: the one it kept from before where that is
  // free here, else the lowest free one.
  std::size_t slot_for(std::uint64_t group, const void* op, std::optional<std::size_t> kept);

 private:
  std::string label_;
  region* outer_;
  std::map<std::uint64_t, std::vector<const void*>> taken_;  // by group: who has which slot
};

}  // namespace reprise
