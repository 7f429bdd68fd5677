// Fault points and landmarks: named places in our own code that a test may drive or watch.
//
// A fault point is a rare way that is always allowed: a pool that grows although it could reuse, a
// ring whose slots are all taken. A landmark is a place that a good test has been to. Nobody
// listens in a normal run, and each then costs one load. The simulated GPU listens: its seed
// chooses which fault points are taken, and a run that missed a landmark says which.
#pragma once

#include <string_view>

namespace reprise {

class fault_listener {
 public:
  virtual ~fault_listener() = default;
  virtual bool takes(std::string_view point) = 0;       // the rare way, this time
  virtual void reached(std::string_view landmark) = 0;  // fault points that are taken, too
};

// Of this thread; null: nobody listens.
inline thread_local fault_listener* listens_to_faults = nullptr;

// A build without them, and without what pools tell the simulated GPU: to measure what they cost.
#if defined(REPRISE_WITHOUT_CHECKS)

inline constexpr bool built_with_checks = false;

inline bool fault_point(std::string_view) {
  return false;
}
inline void landmark(std::string_view) {}

#else

inline constexpr bool built_with_checks = true;

// True: take the rare way.
inline bool fault_point(std::string_view name) {
  fault_listener* const listener = listens_to_faults;
  if (listener == nullptr) [[likely]]
    return false;
  if (!listener->takes(name)) return false;
  listener->reached(name);
  return true;
}

inline void landmark(std::string_view name) {
  fault_listener* const listener = listens_to_faults;
  if (listener != nullptr) [[unlikely]]
    listener->reached(name);
}

#endif

}  // namespace reprise
