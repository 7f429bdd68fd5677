// Pointers of a checked compile: what they reach is noted in the log of this thread
// (touch_log.hpp).
//
// A checked_ptr<T> is used like a T*, as an iterator too. Reaching through one to a constant gives
// the value, once its read is noted; to another, a reference that notes a read when it is used as a
// value and a write when it is assigned. So `auto x = p[i]` of the latter is still a reference: say
// the type. There is no way from here to a raw pointer that the compiler takes by itself; memcpy
// and the like become read_elements and its kin (elements.hpp).
#pragma once

#if !defined(REPRISE_CHECKED)
#error "checked_ptr.hpp is for checked bodies: include reprise/device/pointer.hpp"
#endif

#include <compare>
#include <cstddef>
#include <iterator>
#include <type_traits>

#include "reprise/base/portable.hpp"
#include "reprise/device/touch_log.hpp"

namespace reprise::REPRISE_BODIES {

inline void note_touch(const void* at, std::size_t bytes, bool writes) {
  if (touch_log* const log = touches_of_this_thread) log->note(at, bytes, writes);
}

// What `p[i]` is where it may be written. Assigning to it does so through a const one too: it
// refers.
template <class T>
class checked_ref {
 public:
  explicit checked_ref(T* at) : at_{at} {}
  checked_ref(const checked_ref&) = default;

  operator T() const {
    note_touch(at_, sizeof(T), false);
    return *at_;
  }
  const checked_ref& operator=(T value) const {
    note_touch(at_, sizeof(T), true);
    *at_ = value;
    return *this;
  }
  const checked_ref& operator=(const checked_ref& other) const {
    return *this = static_cast<T>(other);
  }

  template <class U>
  const checked_ref& operator+=(const U& by) const {
    return update([&](T& value) { value += by; });
  }
  template <class U>
  const checked_ref& operator-=(const U& by) const {
    return update([&](T& value) { value -= by; });
  }
  template <class U>
  const checked_ref& operator*=(const U& by) const {
    return update([&](T& value) { value *= by; });
  }
  template <class U>
  const checked_ref& operator/=(const U& by) const {
    return update([&](T& value) { value /= by; });
  }
  template <class U>
  const checked_ref& operator%=(const U& by) const {
    return update([&](T& value) { value %= by; });
  }
  template <class U>
  const checked_ref& operator&=(const U& by) const {
    return update([&](T& value) { value &= by; });
  }
  template <class U>
  const checked_ref& operator|=(const U& by) const {
    return update([&](T& value) { value |= by; });
  }
  template <class U>
  const checked_ref& operator^=(const U& by) const {
    return update([&](T& value) { value ^= by; });
  }
  template <class U>
  const checked_ref& operator<<=(const U& by) const {
    return update([&](T& value) { value <<= by; });
  }
  template <class U>
  const checked_ref& operator>>=(const U& by) const {
    return update([&](T& value) { value >>= by; });
  }
  const checked_ref& operator++() const { return *this += 1; }
  const checked_ref& operator--() const { return *this -= 1; }
  T operator++(int) const {
    const T before = *this;
    *this += 1;
    return before;
  }
  T operator--(int) const {
    const T before = *this;
    *this -= 1;
    return before;
  }

  // By value, as std::swap cannot: so that algorithms can sort.
  friend void swap(checked_ref a, checked_ref b) {
    const T before = a;
    a = b;
    b = before;
  }

 private:
  // By way of a T of our own, so that mixed types promote and convert as they do for a T&.
  template <class Change>
  const checked_ref& update(Change change) const {
    T value = *this;
    change(value);
    return *this = value;
  }

  T* at_;
};

template <class T>
class checked_ptr {
 public:
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using reference = std::conditional_t<std::is_const_v<T>, value_type, checked_ref<T>>;
  using pointer = checked_ptr;
  using iterator_category = std::random_access_iterator_tag;

  checked_ptr() = default;
  checked_ptr(std::nullptr_t) {}
  explicit checked_ptr(T* at) : at_{at} {}
  template <class U>
    requires std::is_same_v<const U, T>
  checked_ptr(checked_ptr<U> other) : at_{other.unchecked()} {}

  reference operator*() const {
    if constexpr (std::is_const_v<T>) {
      note_touch(at_, sizeof(T), false);
      return *at_;
    } else {
      return reference{at_};
    }
  }
  reference operator[](difference_type i) const { return *(*this + i); }

  checked_ptr& operator+=(difference_type by) {
    at_ += by;
    return *this;
  }
  checked_ptr& operator-=(difference_type by) { return *this += -by; }
  checked_ptr& operator++() { return *this += 1; }
  checked_ptr& operator--() { return *this -= 1; }
  checked_ptr operator++(int) {
    const checked_ptr before = *this;
    ++*this;
    return before;
  }
  checked_ptr operator--(int) {
    const checked_ptr before = *this;
    --*this;
    return before;
  }
  friend checked_ptr operator+(checked_ptr p, difference_type by) { return p += by; }
  friend checked_ptr operator+(difference_type by, checked_ptr p) { return p += by; }
  friend checked_ptr operator-(checked_ptr p, difference_type by) { return p -= by; }
  friend difference_type operator-(checked_ptr a, checked_ptr b) { return a.at_ - b.at_; }

  friend bool operator==(checked_ptr a, checked_ptr b) { return a.at_ == b.at_; }
  friend std::strong_ordering operator<=>(checked_ptr a, checked_ptr b) { return a.at_ <=> b.at_; }
  explicit operator bool() const { return at_ != nullptr; }

  // The address, for bytes that the caller notes.
  T* unchecked() const { return at_; }

 private:
  T* at_ = nullptr;
};

}  // namespace reprise::REPRISE_BODIES
