// Images: the memory that the views of one launch name, copied somewhere else, and the same
// arguments with their views there. For bodies that cannot reach the memory where it is.
//
// Views that overlap lie in one image, so that a body that is given x for y too finds them so
// again. Addresses are only compared: what a view names need not be there.
#pragma once

#include <cstddef>
#include <vector>

#include "reprise/device/view.hpp"

namespace reprise {

// One range that views name, and where its copy lies.
struct view_image {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  std::byte* copy = nullptr;
};

class image_map {
 public:
  // Before any copy is placed. An empty range needs no image.
  void add(const void* begin, std::size_t bytes);

  // Apart from one another, by address.
  std::vector<view_image>& images() { return images_; }
  const std::vector<view_image>& images() const { return images_; }

  // Where the copy of this byte lies; null where no image has it.
  std::byte* copy_of(const void* at) const;

 private:
  std::vector<view_image> images_;
};

template <class A>
A moved(const A& scalar, const image_map&) {
  return scalar;
}
template <class T>
view<T> moved_view(const view<T>& from, const image_map& to) {
  return {reinterpret_cast<T*>(to.copy_of(from.data())), from.size()};
}
template <class T>
read<T> moved(const read<T>& argument, const image_map& to) {
  return read<T>{moved_view<const T>(argument, to)};
}
template <class T>
write<T> moved(const write<T>& argument, const image_map& to) {
  return write<T>{moved_view<T>(argument, to)};
}
template <class T>
inout<T> moved(const inout<T>& argument, const image_map& to) {
  return inout<T>{moved_view<T>(argument, to)};
}

}  // namespace reprise
