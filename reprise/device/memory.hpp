// Pools, buffers and pinned host memory.
//
// A pool is an arena over slabs of its device: addresses are stable and the same order of calls
// gives the same layout. Freeing is in stream order: a block is reused at once by the stream that
// freed it, and by another only behind an event. A block that was taken inside a capture is written
// by each replay: inside that capture it is reused where its free precedes the use in the graph,
// and by everybody else once the graph and its executables are gone. Thread safe per pool.
#pragma once

#if defined(REPRISE_CHECKED)
#error \
    "a checked compile is for kernel bodies: keep them in a .cpp apart from code that owns memory"
#endif

#include <cstddef>
#include <limits>
#include <memory>
#include <source_location>
#include <string>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/view.hpp"

namespace reprise {

class pinned_memory;  // ledger.hpp
class pool_state;

class pool {
 public:
  explicit pool(device_ref device, std::string label = {});

  device_ref device() const;
  const std::string& label() const;
  std::size_t bytes() const;  // of slabs held
  std::size_t used() const;   // of blocks that are live

 private:
  friend class block;
  std::shared_ptr<pool_state> state_;
};

// Untyped device memory: owns, move-only, keeps its pool alive. Contents are undefined.
class block {
 public:
  block() = default;
  block(pool& from, std::size_t bytes, stream_ref stream,
        std::source_location place = std::source_location::current());
  // Memory that no work has used since the device gave it out: every stream may use it at once, not
  // only `stream` and what is ordered behind it. Freed in the order of `stream`, as any other.
  static block fresh(pool& from, std::size_t bytes, stream_ref stream,
                     std::source_location place = std::source_location::current());
  block(block&& other) noexcept { swap(other); }
  block& operator=(block&& other) noexcept {
    block taken{std::move(other)};
    swap(taken);
    return *this;
  }
  ~block();

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // From now on the block belongs to `stream`, which the caller has ordered after its last use.
  void freed_on(stream_ref stream) { stream_ = stream.id(); }

 private:
  block(pool& from, std::size_t bytes, stream_ref stream, bool fresh, std::source_location place);
  void swap(block& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(stream_, other.stream_);
  }

  std::shared_ptr<pool_state> pool_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  stream_id stream_ = stream_id::none;
};

namespace detail {

// A product that would wrap is as many bytes as there are, which no device has.
template <class T>
constexpr std::size_t bytes_of(std::size_t count) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  return count <= most / sizeof(T) ? count * sizeof(T) : most;
}

}  // namespace detail

// `count` elements on a device. Freed in the order of the stream it was made on.
template <class T>
class buffer {
 public:
  buffer() = default;
  buffer(pool& from, std::size_t count, stream_ref stream,
         std::source_location place = std::source_location::current())
      : memory_{from, detail::bytes_of<T>(count), stream, place} {}

  operator view<T>() const { return {reinterpret_cast<T*>(memory_.data()), size()}; }
  view<T> all() const { return *this; }
  std::size_t size() const { return memory_.bytes() / sizeof(T); }

 private:
  block memory_;
};

// Page-locked host memory, which copies read and write without staging. Graphs whose works touch it
// keep it; otherwise whoever destroys it has seen the last copy finish.
class pinned_block {
 public:
  pinned_block() = default;
  pinned_block(device_ref device, std::size_t bytes,
               std::source_location place = std::source_location::current());
  pinned_block(pinned_block&& other) noexcept { swap(other); }
  pinned_block& operator=(pinned_block&& other) noexcept {
    pinned_block taken{std::move(other)};
    swap(taken);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void swap(pinned_block& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  std::shared_ptr<pinned_memory> memory_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class T>
class pinned {
 public:
  pinned() = default;
  pinned(device_ref device, std::size_t count,
         std::source_location place = std::source_location::current())
      : memory_{device, detail::bytes_of<T>(count), place} {}

  operator view<T>() const { return {data(), size()}; }
  view<T> all() const { return *this; }
  T* data() const { return reinterpret_cast<T*>(memory_.data()); }
  std::size_t size() const { return memory_.bytes() / sizeof(T); }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  pinned_block memory_;
};

}  // namespace reprise

// So that `read(x)`, `write(x)` and `inout(x)` take the owners as they are. Guides lie beside their
// templates.
namespace reprise::REPRISE_BODIES {

template <class T>
read(const buffer<T>&) -> read<T>;
template <class T>
write(const buffer<T>&) -> write<T>;
template <class T>
inout(const buffer<T>&) -> inout<T>;
template <class T>
read(const pinned<T>&) -> read<T>;
template <class T>
write(const pinned<T>&) -> write<T>;

}  // namespace reprise::REPRISE_BODIES
