// Sixteen lanes: the order in which CPU bodies add, whatever the processor.
//
// A sum over k is kept in 16 partial sums; lane j takes the k with k mod 16 = j, in increasing k,
// each product rounded before it is added, and lanes past the end take zeros. One fixed tree then
// adds the lanes. A rung is a width of native vector (4, 8 or 16 floats) over which the same source
// is compiled; all give the same bits, because none of this depends on the width.
//
// A body is a struct with an always_inline `void operator()(first, last) const` that is a template
// over its rung; `spread<Rung>` runs it over the threads of a call, compiled for the rung's
// instructions. That is done by function attributes and not by flags for the whole file, which
// would leak newer instructions into inline functions that older processors share.
//
// Vectors are passed by reference: by value, their ABI would depend on the instructions allowed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "reprise/base/dtype.hpp"
#include "reprise/device/cpu_call.hpp"

namespace reprise::REPRISE_BODIES::ops {

inline constexpr int lane_count = 16;

struct generic_rung {
  static constexpr int width = 4;
  template <class Body>
  static void enter(const Body& body, std::int64_t first, std::int64_t last) {
    body(first, last);
  }
};

#if defined(REPRISE_X86_RUNGS)
struct avx2_rung {
  static constexpr int width = 8;
  template <class Body>
  [[gnu::target("avx2")]] static void enter(const Body& body, std::int64_t first,
                                            std::int64_t last) {
    body(first, last);
  }
};

struct avx512_rung {
  static constexpr int width = 16;
  template <class Body>
  [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] static void enter(const Body& body,
                                                                          std::int64_t first,
                                                                          std::int64_t last) {
    body(first, last);
  }
};
#endif

template <class Rung, class Body>
void spread(const cpu_call& call, std::int64_t count, std::int64_t grain, const Body& body) {
  call.parallel_for(count, grain, [&body](std::int64_t first, std::int64_t last) {
    Rung::enter(body, first, last);
  });
}

template <int Width>
struct native {
  typedef float floats __attribute__((vector_size(Width * sizeof(float))));
  typedef std::uint32_t words __attribute__((vector_size(Width * sizeof(std::uint32_t))));
  typedef std::uint16_t halves __attribute__((vector_size(Width * sizeof(std::uint16_t))));
};
template <int Width>
using floats = typename native<Width>::floats;

template <int Width>
[[gnu::always_inline]] inline void load(const float* from, floats<Width>& to) {
  std::memcpy(&to, from, sizeof to);
}

// By way of a vector of twice the width, of which the low half counts: GCC 12 makes one instruction
// of that, and five of the straight conversion.
template <int Width, int... Lane>
[[gnu::always_inline]] inline void load(const bf16* from, floats<Width>& to,
                                        std::integer_sequence<int, Lane...>) {
  typename native<Width>::halves stored;
  std::memcpy(&stored, from, sizeof stored);
  const typename native<2 * Width>::halves twice =
      __builtin_shufflevector(stored, stored, Lane..., (Lane < 0 ? 0 : -1)...);
  const typename native<2 * Width>::words wide =
      __builtin_convertvector(twice, typename native<2 * Width>::words) << 16;
  const typename native<Width>::words bits = __builtin_shufflevector(wide, wide, Lane...);
  std::memcpy(&to, &bits, sizeof to);
}

template <int Width>
[[gnu::always_inline]] inline void load(const bf16* from, floats<Width>& to) {
  load<Width>(from, to, std::make_integer_sequence<int, Width>{});
}

#if defined(REPRISE_CHECKED)
template <int Width, class T>
[[gnu::always_inline]] inline void load(checked_ptr<const T> from, floats<Width>& to) {
  T elements[Width];
  read_elements(from, Width, elements);
  load<Width>(elements, to);
}
#endif

template <int Width>
[[gnu::always_inline]] inline void store(const floats<Width>& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}

// The first `count` < Width elements, then zeros.
template <int Width, class From>
[[gnu::always_inline]] inline void load_tail(From from, std::int64_t count, floats<Width>& to) {
  std::iter_value_t<From> padded[Width] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = from[i];
  load<Width>(padded, to);
}

// The first half of the tree that adds sixteen lanes: j and j + 8, then j and j + 4.
template <int Width>
[[gnu::always_inline]] inline void fold_to_four(const floats<Width> (&parts)[lane_count / Width],
                                                floats<4>& four) {
  if constexpr (Width == 4) {
    four = (parts[0] + parts[2]) + (parts[1] + parts[3]);
  } else {
    floats<8> eight;
    if constexpr (Width == 8) {
      eight = parts[0] + parts[1];
    } else {
      eight = __builtin_shufflevector(parts[0], parts[0], 0, 1, 2, 3, 4, 5, 6, 7) +
              __builtin_shufflevector(parts[0], parts[0], 8, 9, 10, 11, 12, 13, 14, 15);
    }
    four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
           __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
  }
}

// The whole tree for `Count` sums; its second half, j and j + 2, then both, for four sums at a
// time.
template <int Width, int Count>
[[gnu::always_inline]] inline void fold(const floats<Width> (&sums)[Count][lane_count / Width],
                                        float (&out)[Count]) {
  for (int first = 0; first < Count; first += 4) {
    floats<4> v[4] = {};
    for (int i = 0; i < 4 && first + i < Count; ++i) fold_to_four<Width>(sums[first + i], v[i]);
    const floats<4> p = __builtin_shufflevector(v[0], v[1], 0, 1, 4, 5) +
                        __builtin_shufflevector(v[0], v[1], 2, 3, 6, 7);
    const floats<4> q = __builtin_shufflevector(v[2], v[3], 0, 1, 4, 5) +
                        __builtin_shufflevector(v[2], v[3], 2, 3, 6, 7);
    const floats<4> all =
        __builtin_shufflevector(p, q, 0, 2, 4, 6) + __builtin_shufflevector(p, q, 1, 3, 5, 7);
    for (int i = 0; i < 4 && first + i < Count; ++i) out[first + i] = all[i];
  }
}

// out[r * Cols + c] = the dot product of row r of x and row c of w, both pointers (to floats or
// bf16s, checked or not), `k` elements each. One part of
// the lanes at a time, so that Rows * Cols accumulators fit the registers at every width.
template <int Width, int Rows, int Cols, class X, class W>
[[gnu::always_inline]] inline void dot_block(X x, std::int64_t x_stride, W w, std::int64_t w_stride,
                                             std::int64_t k, float (&out)[Rows * Cols]) {
  constexpr int parts = lane_count / Width;
  floats<Width> sums[Rows * Cols][parts];
  for (int p = 0; p < parts; ++p) {
    floats<Width> acc[Rows][Cols];
    for (int r = 0; r < Rows; ++r) {
      for (int c = 0; c < Cols; ++c) acc[r][c] = floats<Width>{};
    }
    const auto add_products = [&](const auto& load_at) __attribute__((always_inline)) {
      floats<Width> b[Cols];
      for (int c = 0; c < Cols; ++c) load_at(w + c * w_stride, b[c]);
      for (int r = 0; r < Rows; ++r) {
        floats<Width> a;
        load_at(x + r * x_stride, a);
        for (int c = 0; c < Cols; ++c) acc[r][c] += a * b[c];
      }
    };
    std::int64_t i = p * Width;
    for (; i + Width <= k; i += lane_count) {
      add_products([i](const auto& row, floats<Width>& to)
                       __attribute__((always_inline)) { load<Width>(row + i, to); });
    }
    if (i < k) {
      add_products([ i, k ](const auto& row, floats<Width>& to)
                       __attribute__((always_inline)) { load_tail<Width>(row + i, k - i, to); });
    }
    for (int r = 0; r < Rows; ++r) {
      for (int c = 0; c < Cols; ++c) sums[r * Cols + c][p] = acc[r][c];
    }
  }
  fold<Width>(sums, out);
}

}  // namespace reprise::REPRISE_BODIES::ops
