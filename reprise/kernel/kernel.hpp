// A kernel is a name and a typed signature; its bodies are cells, kept in a registry per platform.
//
// Seen by `.cu` files: no device, no formatting. A kernel that is a template over element types has
// one name; the types of its views are part of its identity. Declares what headers of ops name:
// calls, and the registry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "reprise/base/dtype.hpp"
#include "reprise/device/view.hpp"

namespace reprise::REPRISE_BODIES {

class cpu_call;  // device/cpu_call.hpp

}  // namespace reprise::REPRISE_BODIES

namespace reprise {

class cuda_call;        // cuda/call.cuh
class kernel_registry;  // registry.hpp

// Identity of (name, signature): what tables are keyed by.
enum class kernel_id : std::uint64_t {};

namespace detail {

constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  return (hash ^ word) * 0x100000001b3u;  // FNV-1a, 64 bits
}

// A scalar by what it is and its size, so that a float is never taken for an int; a struct by its
// size.
template <class A>
constexpr std::uint64_t scalar_word() {
  std::uint64_t kind = 0;
  if (std::is_floating_point_v<A>) kind = 1;
  if (std::is_integral_v<A>) kind = std::is_signed_v<A> ? 2 : 3;
  if (std::is_same_v<A, bool>) kind = 4;
  return (std::uint64_t{1} << 40) + (kind << 36) + sizeof(A);
}

// One word per argument: which access, which element; a scalar as above.
template <class A>
inline constexpr std::uint64_t argument_word = scalar_word<A>();
template <class T>
inline constexpr std::uint64_t argument_word<read<T>> = 0x100 + static_cast<int>(dtype_of<T>);
template <class T>
inline constexpr std::uint64_t argument_word<write<T>> = 0x200 + static_cast<int>(dtype_of<T>);
template <class T>
inline constexpr std::uint64_t argument_word<inout<T>> = 0x300 + static_cast<int>(dtype_of<T>);

}  // namespace detail

// "matmul(r:f32 r:bf16 w:f32)": how tables and messages write a kernel.
std::string kernel_text(const char* name, std::span<const std::uint64_t> argument_words);

template <class Signature>
class kernel;

template <class... A>
class kernel<void(A...)> {
 public:
  consteval explicit kernel(const char* name) : name_{name} {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (const char* c = name; *c != '\0'; ++c) {
      hash = detail::mix(hash, static_cast<unsigned char>(*c));
    }
    ((hash = detail::mix(hash, detail::argument_word<A>)), ...);
    id_ = kernel_id{hash};
  }

  constexpr const char* name() const { return name_; }
  constexpr kernel_id id() const { return id_; }
  std::string text() const {
    const std::uint64_t words[] = {detail::argument_word<A>..., 0};
    return kernel_text(name_, {words, sizeof...(A)});
  }

 private:
  const char* name_;
  kernel_id id_{};
};

}  // namespace reprise
