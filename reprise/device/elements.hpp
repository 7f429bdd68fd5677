// What a CPU body does with many elements, or with one atomically: what memcpy, reinterpret_cast
// and std::atomic_ref are for a T*, for pointers that may be checked (pointer.hpp).
//
// Plain, each is the one call that it stands for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "reprise/device/pointer.hpp"

namespace reprise::REPRISE_BODIES {

// `count` elements to an object of the body's own: what memcpy does.
template <class T>
inline void read_elements(pointer_to<T> from, std::size_t count, void* to) {
  if (count == 0) return;
  note_touch(address_of(from), count * sizeof(T), false);
  std::memcpy(to, address_of(from), count * sizeof(T));
}

template <class T>
inline void write_elements(const void* from, std::size_t count, pointer_to<T> to) {
  if (count == 0) return;
  note_touch(address_of(to), count * sizeof(T), true);
  std::memcpy(address_of(to), from, count * sizeof(T));
}

// From one place that the launch declared to another; the two do not overlap.
template <class T>
inline void copy_elements(pointer_to<T> from, std::size_t count,
                          pointer_to<std::remove_const_t<T>> to) {
  if (count == 0) return;
  note_touch(address_of(from), count * sizeof(T), false);
  note_touch(address_of(to), count * sizeof(T), true);
  std::memcpy(address_of(to), address_of(from), count * sizeof(T));
}

// The same bytes as elements of type U, which must be aligned as U needs it.
template <class U, class T>
inline auto reinterpret_elements(pointer_to<T> p) {
  using element = std::conditional_t<std::is_const_v<T>, const U, U>;
  return pointer_to<element>{reinterpret_cast<element*>(address_of(p))};
}

// std::atomic_ref's, for words that the host or another body looks at meanwhile.
template <class T>
inline std::remove_const_t<T> load_atomically(pointer_to<T> at,
                                              std::memory_order order = std::memory_order_seq_cst) {
  note_touch(address_of(at), sizeof(T), false);
  return std::atomic_ref{const_cast<std::remove_const_t<T>&>(*address_of(at))}.load(order);
}

template <class T>
inline void store_atomically(pointer_to<T> at, std::type_identity_t<T> value,
                             std::memory_order order = std::memory_order_seq_cst) {
  note_touch(address_of(at), sizeof(T), true);
  std::atomic_ref{*address_of(at)}.store(value, order);
}

// Adds, and returns what was there.
template <class T>
inline T add_atomically(pointer_to<T> at, std::type_identity_t<T> by,
                        std::memory_order order = std::memory_order_seq_cst) {
  note_touch(address_of(at), sizeof(T), false);
  note_touch(address_of(at), sizeof(T), true);
  return std::atomic_ref{*address_of(at)}.fetch_add(by, order);
}

}  // namespace reprise::REPRISE_BODIES
