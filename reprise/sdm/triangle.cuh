// The products of a chunk's triangular matrices [C, C] with rows of tokens, on CUDA: both products
// of sdm_solve, or of sdm_solve_back, in one kernel.
//
// A block has eight columns of a stream, so that 768 of them fill 96 blocks; it needs no other
// block, not even where rows are replaced in place. A thread sums four rows of one column, a block
// 128 rows at a time, in increasing order of the other index. Matrices come in tiles of 32 of that
// index, copied to shared memory behind the sums, three tiles ahead, across rows and across the two
// products: at C = 128 a product has four. Code is rolled up: a launch runs it a few times only,
// and fetching it from memory took longer than running it.
//
//   Back = false: row t takes the tokens s <= t; blocks of rows from the last to the first
//   Back = true:  row s takes the tokens t >= s, of the transposed matrix; from the first to the
//                 last
// In this order a row that is replaced is one that no later block of rows reads.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "reprise/ops/math.hpp"
#include "reprise/sdm/chunk_place.hpp"

namespace reprise::REPRISE_BODIES::sdm {

inline constexpr int triangle_threads = 256;
inline constexpr int triangle_columns = 8;
inline constexpr int triangle_rows = 128;
inline constexpr int triangle_terms = 32;

// One product: sums over terms of matrix * term (* strength, where that is there).
struct triangle_product {
  const float* matrix;    // that of stream 0
  const float* terms;     // [P, T, D]
  const float* strength;  // [P, T] or null
};

// Which tile: of which product, rows and terms.
struct triangle_tile {
  int product = 0;
  std::int32_t row = 0;
  std::int32_t term = 0;
};

template <bool Back, bool Whole>
class triangle {
 public:
  static constexpr int stages = 4;
  // From one line of a tile to the next: four banks on, so that the lanes of a warp, which read 16
  // bytes of different lines or columns, meet in no bank.
  static constexpr int line = Back ? triangle_rows + 4 : triangle_terms + 4;
  static constexpr int lines = Back ? triangle_terms : triangle_rows;
  static constexpr int term_line = triangle_terms + 4;

  // 75 KiB: a block of any card may have as much, when it asks.
  struct room {
    float4 matrix[stages][lines * line / 4];
    float4 terms[2][triangle_columns * term_line / 4];
  };

  __device__ triangle(const chunk_place& c, room& shared, const triangle_product& first,
                      const triangle_product& second, std::int64_t p, std::int64_t column)
      : room_{shared},
        first_{of_column(c, first, p, column + my_column())},
        second_{of_column(c, second, p, column + my_column())},
        at_{c.token(p, 0) * c.width + column + my_column()},
        width_{c.width},
        chunk_{static_cast<std::int32_t>(c.chunk)},
        count_{c.count},
        has_column_{column + my_column() < c.width} {}

  // finish(product, t, at, sum) for each row t of both products, by the thread that has the sum;
  // `at` is where the row's column lies in [P, T, D]. The second product sees what that wrote.
  template <class Finish>
  __device__ void run(const Finish& finish) {
    triangle_tile now = begin_of(0);
    triangle_tile coming = now;
#pragma unroll 1
    for (int i = 0; i < stages - 1; ++i) bring(coming, i);
    float term = fetch_term(now);
    float sums[4] = {};
#pragma unroll 1
    for (int i = 0; now.product < 2; ++i) {
      reinterpret_cast<float*>(
          room_.terms[i % 2])[my_column() * term_line + threadIdx.x / triangle_columns] = term;
      __pipeline_wait_prior(stages - 2);
      __syncthreads();  // this tile is there, and the one before has been read
      bring(coming, (i + stages - 1) % stages);
      const triangle_tile done = now;
      advance(now);
      const bool same_product = now.product == done.product;
      if (same_product) term = fetch_term(now);
      add_tile(done, i, sums);
      if (same_product && now.row == done.row) continue;
      put(done, sums, finish);
      if (same_product) continue;
      __syncthreads();  // what the first product wrote is there
      term = fetch_term(now);
    }
  }

 private:
  __device__ std::int32_t first_row() const {
    return Back ? 0 : (count_ - 1) / triangle_rows * triangle_rows;
  }
  __device__ std::int32_t term_begin(std::int32_t row) const { return Back ? row : 0; }
  __device__ std::int32_t term_end(std::int32_t row) const {
    return Back ? count_ : min(row + triangle_rows, count_);
  }
  __device__ triangle_tile begin_of(int product) const {
    return {product, first_row(), term_begin(first_row())};
  }
  __device__ void advance(triangle_tile& at) const {
    if (at.product >= 2) return;
    at.term += triangle_terms;
    if (at.term < term_end(at.row)) return;
    at.row += Back ? triangle_rows : -triangle_rows;
    if (at.row < 0 || at.row >= count_) {
      at = begin_of(at.product + 1);
      return;
    }
    at.term = term_begin(at.row);
  }

  // Begins to copy this thread's four pieces of four of a tile, and goes on to the next tile. What
  // lies across the diagonal is not read.
  __device__ void bring(triangle_tile& tile, int stage) const {
    if (tile.product < 2) {
      constexpr int pieces = line / 4 - 1;  // of a line
      const float* const square = tile.product == 0 ? first_.matrix : second_.matrix;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int of_line =
            static_cast<int>(threadIdx.x) / pieces + i * (triangle_threads / pieces);
        const int piece = static_cast<int>(threadIdx.x) % pieces;
        // Of the matrix, whose diagonal has the same place in every tile.
        const std::int32_t t = (Back ? tile.term : tile.row) + of_line;
        const std::int32_t s = (Back ? tile.row : tile.term) + 4 * piece;
        const bool there = t < count_ && s <= t;
        const float* const from = square + (there ? std::int64_t{t} * chunk_ + s : 0);
        float4* const to = &room_.matrix[stage][of_line * (line / 4) + piece];
        if constexpr (Whole) {
          __pipeline_memcpy_async(to, from, sizeof(float4), there ? 0 : sizeof(float4));
        } else {
          const auto element = [&](int j) { return there && s + j <= t ? from[j] : 0.0f; };
          *to = make_float4(element(0), element(1), element(2), element(3));
        }
      }
      advance(tile);
    }
    __pipeline_commit();  // also of nothing: groups are counted
  }

  // One term of this thread's column: eight threads read a row's.
  __device__ float fetch_term(const triangle_tile& tile) const {
    const std::int32_t t = tile.term + static_cast<std::int32_t>(threadIdx.x / triangle_columns);
    if (tile.product >= 2 || !has_column_ || t >= count_) return 0.0f;
    const triangle_product& of = tile.product == 0 ? first_ : second_;
    const float term = of.terms[t * width_];
    return of.strength == nullptr ? term : math::mul(of.strength[t], term);
  }

  // A warp has 16 neighbouring rows: four lanes wide, eight columns across. Its lanes' rows are
  // neighbours where lines of the tile are rows, and four apart where columns are.
  __device__ static int row_of_lane(int i) {
    const int warp = static_cast<int>(threadIdx.x) / 32;
    const int group = static_cast<int>(threadIdx.x) % 32 / triangle_columns;
    return 16 * warp + (Back ? 4 * group + i : 4 * i + group);
  }

  __device__ void add_tile(const triangle_tile& tile, int i, float (&sums)[4]) const {
    const std::int32_t first = tile.row + static_cast<std::int32_t>(threadIdx.x) / 32 * 16;
    const std::int32_t last = first + 15;
    const std::int32_t end = tile.term + triangle_terms;  // the same for the whole warp
    if (first >= count_) return;
    if (Back ? end <= first : tile.term > last) return;
    if (Back ? tile.term >= last && end <= count_ : end - 1 <= first) {
      add_terms<true>(tile, i, sums);
    } else {
      add_terms<false>(tile, i, sums);
    }
  }

  // All: every row takes every term.
  template <bool All>
  __device__ void add_terms(const triangle_tile& tile, int tile_number, float (&sums)[4]) const {
    const float4* const matrix = room_.matrix[tile_number % stages];
    const float4* const terms = room_.terms[tile_number % 2] + my_column() * (term_line / 4);
#pragma unroll 2
    for (int k = 0; k < triangle_terms; k += 4) {
      const float4 four = terms[k / 4];
      const float term[4] = {four.x, four.y, four.z, four.w};
      float by[4][4];  // row, term
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if constexpr (Back) {
          const float4 of = matrix[(k + i) * (line / 4) + row_of_lane(0) / 4];
          by[0][i] = of.x;
          by[1][i] = of.y;
          by[2][i] = of.z;
          by[3][i] = of.w;
        } else {
          const float4 of = matrix[row_of_lane(i) * (line / 4) + k / 4];
          by[i][0] = of.x;
          by[i][1] = of.y;
          by[i][2] = of.z;
          by[i][3] = of.w;
        }
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::int32_t row = tile.row + row_of_lane(i);
          const std::int32_t at = tile.term + k + j;
          if (All || (Back ? at >= row && at < count_ : at <= row)) {
            sums[i] = math::add(sums[i], math::mul(by[i][j], term[j]));
          }
        }
      }
    }
  }

  // Where rows are replaced, all of this block's terms were read before its last tile was added.
  template <class Finish>
  __device__ void put(const triangle_tile& tile, float (&sums)[4], const Finish& finish) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int32_t row = tile.row + row_of_lane(i);
      if (row < count_ && has_column_) finish(tile.product, at_ + row * width_, sums[i]);
      sums[i] = 0.0f;
    }
  }

  __device__ static int my_column() { return static_cast<int>(threadIdx.x) % triangle_columns; }

  // The product as this stream and column have it.
  __device__ static triangle_product of_column(const chunk_place& c, const triangle_product& of,
                                               std::int64_t p, std::int64_t column) {
    const std::int64_t token = c.token(p, 0);
    return {of.matrix + c.of_stream(p) * c.chunk * c.chunk, of.terms + token * c.width + column,
            of.strength == nullptr ? nullptr : of.strength + token};
  }

  room& room_;
  triangle_product first_, second_;
  std::int64_t at_;  // of this thread's column in the chunk's first row
  std::int64_t width_;
  std::int32_t chunk_, count_;
  bool has_column_;
};

// On the host: whether rows of both matrices can be read in fours.
inline bool in_fours(const chunk_place& c, const float* a, const float* b) {
  return c.chunk % 4 == 0 && reinterpret_cast<std::uintptr_t>(a) % 16 == 0 &&
         reinterpret_cast<std::uintptr_t>(b) % 16 == 0;
}

// On the host: grid(…, p) for streams from p on, as many as a grid has room for.
template <class Room, class Grid, class... Arguments>
void launch_triangle(Grid* grid, cudaStream_t on, const chunk_place& c, Arguments... arguments) {
  // What it returns is CUDA's last error too, at which the device looks.
  cudaFuncSetAttribute(grid, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Room));
  constexpr std::int64_t most = 65'535;
  const std::int64_t slices = (c.width + triangle_columns - 1) / triangle_columns;
  for (std::int64_t p = 0; p < c.streams; p += most) {
    const std::int64_t here = c.streams - p < most ? c.streams - p : most;
    grid<<<dim3{static_cast<unsigned>(slices), static_cast<unsigned>(here)}, triangle_threads,
           sizeof(Room), on>>>(c, arguments..., p);
  }
}

}  // namespace reprise::REPRISE_BODIES::sdm
