// What a CPU body reaches its elements with: pointer_to<T>, which is T*, and in a checked compile
// (base/portable.hpp) a pointer that notes every byte it reaches.
#pragma once

#include <cstddef>

#include "reprise/base/portable.hpp"

#if defined(REPRISE_CHECKED)
#include "reprise/device/checked_ptr.hpp"
#endif

namespace reprise::REPRISE_BODIES {

// As a parameter it deduces T, constant or not.
#if defined(REPRISE_CHECKED)
template <class T>
using pointer_to = checked_ptr<T>;
template <class T>
T* address_of(checked_ptr<T> p) {
  return p.unchecked();
}
#else
template <class T>
using pointer_to = T*;
template <class T>
REPRISE_HD T* address_of(T* p) {
  return p;
}
inline void note_touch(const void*, std::size_t, bool) {}
#endif

}  // namespace reprise::REPRISE_BODIES
