// What a call of the memory op has to move between the device and its memory: the floor under its
// time.
#pragma once

#include <cstdint>

#include "reprise/sdm/sizes.hpp"

namespace reprise::bench {

struct moved_bytes {
  std::int64_t forward = 0;
  std::int64_t backward = 0;

  std::int64_t both() const { return forward + backward; }
};

// Of the op without whole-bank passes, for rows and cotangents of `stored` bytes an element. Each
// token of each stream moves rows of D elements:
//
//   forward    reads W + R rows of the bank, writes W, and saves W
//   backward   reads W + R rows of the cotangent and writes them, and gathers W more before;
//              reads the W saved rows, writes W rows of the bank, and reads R
//
// and rows of D f32: v, readings and errors in the forward, dy, m and dv in the backward. Each
// token's rows count, though tokens of a chunk may share some; indices, weights and what tokens of
// a chunk are to one another do not.
moved_bytes moved_by_op(const sdm_sizes& sizes, std::int64_t stored);

// Of whole-bank passes: the initial bank read as f32 and written for each stream; its cotangent
// zeroed, and at the end read and summed into a gradient of f32.
moved_bytes moved_by_bank_passes(const sdm_sizes& sizes, std::int64_t stored);

}  // namespace reprise::bench
