#include "tests/replay/counted_new.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t allocations = 0;

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const made = alignment <= alignof(std::max_align_t)
                         ? std::malloc(bytes != 0 ? bytes : 1)
                         : std::aligned_alloc(alignment, rounded != 0 ? rounded : alignment);
  if (made == nullptr) throw std::bad_alloc{};
  return made;
}

}  // namespace

// The other forms (array, nothrow) call these.
void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* made) noexcept {
  std::free(made);
}
void operator delete(void* made, std::size_t) noexcept {
  std::free(made);
}
void operator delete(void* made, std::align_val_t) noexcept {
  std::free(made);
}
void operator delete(void* made, std::size_t, std::align_val_t) noexcept {
  std::free(made);
}

namespace reprise::test {

std::uint64_t allocations_of_this_thread() {
  return allocations;
}

}  // namespace reprise::test
