// Views: what kernels take by value, and the words by which a launch declares what it touches.
//
// `read`, `write` and `inout` are both the type in a kernel's signature and the word at a call; a
// wrong access does not compile. Declarations are upper bounds. Host and device code.
//
// In a checked compile (base/portable.hpp) they have the same bytes, and note what goes through
// them.
#pragma once

#include <cstddef>
#include <type_traits>

#include "reprise/base/portable.hpp"
#include "reprise/device/access.hpp"
#include "reprise/device/pointer.hpp"
#include "reprise/device/tensor.hpp"

namespace reprise::detail {

// Throws direct_refused (error.hpp): who wanted the elements of an input that lies behind a word.
[[noreturn]] void refuse_direct(const void* word, const char* wanted);

}  // namespace reprise::detail

namespace reprise::REPRISE_BODIES {

// Contiguous elements on a device, borrowed.
//
// A view of a direct input knows a word of device memory instead, which points to the elements when
// a body runs (docs/recording.md). Only bodies whose cell says `indirect` are given one; they take
// followed() first. Whoever asks one for its elements before is refused by name, on the host.
template <class T>
class view {
 public:
  view() = default;
  REPRISE_HD view(T* data, std::size_t size) : data_{data}, size_{size} {}
#if defined(REPRISE_CHECKED)
  view(pointer_to<T> data, std::size_t size) : view{address_of(data), size} {}
#endif
  // view<T> is a view<const T>.
  template <class U>
    requires std::is_same_v<const U, T>
  REPRISE_HD view(const view<U>& other) : data_{other.data_}, size_{other.size_} {}

  // Of `size` elements behind a word.
  static view through(const std::byte* word, std::size_t size) {
    return {reinterpret_cast<T*>(const_cast<std::byte*>(word)), size | direct};
  }
  REPRISE_HD bool is_direct() const { return (size_ & direct) != 0; }
  // Elements that lie where the word points now, or where they are.
  REPRISE_HD view followed() const {
    if (!is_direct()) return *this;
    const pointer_to<T* const> word{reinterpret_cast<T* const*>(data_)};
    return view{static_cast<T*>(word[0]), size()};
  }
  // Where the elements are, or the word.
  REPRISE_HD const void* place() const { return data_; }

  REPRISE_HD pointer_to<T> data() const {
    require_elements("data()");
    return pointer_to<T>(data_);
  }
  REPRISE_HD std::size_t size() const { return size_ & ~direct; }
  REPRISE_HD std::size_t bytes() const { return size() * sizeof(T); }
  // T&; what checked_ptr.hpp says in a checked compile.
  REPRISE_HD decltype(auto) operator[](std::size_t i) const { return pointer_to<T>(data_)[i]; }
  REPRISE_HD view subview(std::size_t first, std::size_t count) const {
    require_elements("a part of it");
    return view{data_ + first, count};
  }

 private:
  template <class>
  friend class view;
  static constexpr std::size_t direct = ~(~std::size_t{0} >> 1);  // no view has as many elements

  REPRISE_HD void require_elements([[maybe_unused]] const char* wanted) const {
#if !defined(__CUDA_ARCH__)
    if (is_direct()) [[unlikely]]
      detail::refuse_direct(data_, wanted);
#endif
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

// The tensor that a view names, in the shape the caller says.
template <element T>
tensor_ref as_tensor(view<T> elements, const dims& shape) {
  return {reinterpret_cast<std::byte*>(address_of(elements.data())), dtype_of<T>, shape,
          contiguous_strides(shape)};
}
template <element T>
tensor_ref as_tensor(view<T> elements) {
  return as_tensor(elements, {static_cast<std::int64_t>(elements.size())});
}

// The elements of a contiguous tensor; the caller has checked its dtype.
template <class T>
view<T> elements_of(const tensor_ref& tensor) {
  return {reinterpret_cast<T*>(tensor.data), tensor.shape.count()};
}

template <class T>
struct read : view<const T> {
  explicit read(view<const T> from) : view<const T>{from} {}
  explicit read(view<T> from) : view<const T>{from} {}
};

template <class T>
struct write : view<T> {
  explicit write(view<T> to) : view<T>{to} {}
};

template <class T>
struct inout : view<T> {
  explicit inout(view<T> at) : view<T>{at} {}
};

// Arguments that a plain launch has packed are unpacked by a checked body.
static_assert(sizeof(view<float>) == sizeof(float*) + sizeof(std::size_t));
static_assert(sizeof(read<float>) == sizeof(view<float>) &&
              sizeof(write<float>) == sizeof(view<float>) &&
              sizeof(inout<float>) == sizeof(view<float>));
static_assert(std::is_trivially_copyable_v<read<float>> &&
              std::is_trivially_copyable_v<write<float>>);

// What an argument of a kernel declares; scalars declare nothing.
template <class A>
inline constexpr bool is_access = false;
template <class T>
inline constexpr bool is_access<read<T>> = true;
template <class T>
inline constexpr bool is_access<write<T>> = true;
template <class T>
inline constexpr bool is_access<inout<T>> = true;

template <class T>
access access_of(const read<T>& argument) {
  return {argument.place(), argument.bytes(), false, argument.is_direct()};
}
template <class T>
access access_of(const write<T>& argument) {
  return {argument.place(), argument.bytes(), true, argument.is_direct()};
}
template <class T>
access access_of(const inout<T>& argument) {
  return {argument.place(), argument.bytes(), true, argument.is_direct()};
}

}  // namespace reprise::REPRISE_BODIES
