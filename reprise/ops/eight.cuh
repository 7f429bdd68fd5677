// Eight elements at a time, as f32 in registers: how the CUDA bodies of elementwise ops touch
// memory.
//
// One 16-byte access for bf16, two for f32, when the span allows it; otherwise one by one, and not
// past the end. The values are the same either way, and they widen and narrow as on the CPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <initializer_list>

#include "reprise/base/dtype.hpp"

namespace reprise::REPRISE_BODIES::ops {

// On the host: whether rows of `width` elements that begin at these addresses can be read in
// eights.
inline bool in_eights(std::int64_t width, std::initializer_list<const void*> addresses) {
  if (width % 8 != 0) return false;
  for (const void* address : addresses) {
    if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) return false;
  }
  return true;
}

__device__ inline void load_eight(const float* from, float (&to)[8]) {
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  to[0] = low.x;
  to[1] = low.y;
  to[2] = low.z;
  to[3] = low.w;
  to[4] = high.x;
  to[5] = high.y;
  to[6] = high.z;
  to[7] = high.w;
}

__device__ inline void load_eight(const bf16* from, float (&to)[8]) {
  const uint4 raw = *reinterpret_cast<const uint4*>(from);
  const std::uint32_t words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {  // little endian: the first of a pair is the lower half
    to[2 * i] = __uint_as_float(words[i] << 16);
    to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
  }
}

__device__ inline void store_eight(float* to, const float (&from)[8]) {
  reinterpret_cast<float4*>(to)[0] = make_float4(from[0], from[1], from[2], from[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(from[4], from[5], from[6], from[7]);
}

__device__ inline void store_eight(bf16* to, const float (&from)[8]) {
  std::uint32_t words[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t first = narrow<bf16>(from[2 * i]).bits;
    const std::uint32_t second = narrow<bf16>(from[2 * i + 1]).bits;
    words[i] = first | (second << 16);
  }
  *reinterpret_cast<uint4*>(to) = make_uint4(words[0], words[1], words[2], words[3]);
}

// Elements [at, at + 8) of a span of `end`; what lies past the end is read as 0 and not written.
// With Aligned, `at` and `end` are multiples of eight and the span begins at a multiple of 16
// bytes.
template <bool Aligned, class T>
__device__ inline void load_eight(const T* span, std::int64_t at, std::int64_t end,
                                  float (&to)[8]) {
  if constexpr (Aligned) {
    load_eight(span + at, to);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i] = at + i < end ? widen(span[at + i]) : 0.0f;
  }
}

template <bool Aligned, class T>
__device__ inline void store_eight(T* span, std::int64_t at, std::int64_t end,
                                   const float (&from)[8]) {
  if constexpr (Aligned) {
    store_eight(span + at, from);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (at + i < end) span[at + i] = narrow<T>(from[i]);
    }
  }
}

}  // namespace reprise::REPRISE_BODIES::ops
