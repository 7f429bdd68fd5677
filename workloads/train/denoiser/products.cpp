#include "workloads/train/denoiser/products.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace reprise::denoise {

namespace {

using f32x8 = float __attribute__((vector_size(32)));

constexpr int tile_rows = 6;  // 12 accumulators and 4 more: the sixteen registers of AVX2

// c = a b + c, rounded once, in a form of which GCC makes one instruction where there is one. By
// reference: by value, a vector's ABI depends on the instructions allowed.
[[gnu::always_inline]] inline void fuse(const f32x8& a, const f32x8& b, f32x8& c) {
  f32x8 sum;
  for (int i = 0; i < 8; ++i) sum[i] = std::fma(a[i], b[i], c[i]);
  c = sum;
}

// Rows x 16 elements of c; b is packed: its sixteen columns lie side by side.
template <int Rows>
[[gnu::always_inline]] inline void tile(std::int64_t n, std::int64_t k, const strided& a,
                                        const float* b, float* c, bool add) {
  f32x8 sums[Rows][2] = {};
  for (std::int64_t l = 0; l < k; ++l) {
    f32x8 low;
    f32x8 high;
    std::memcpy(&low, b + l * product_columns, sizeof low);
    std::memcpy(&high, b + l * product_columns + 8, sizeof high);
#pragma GCC unroll 6
    for (int r = 0; r < Rows; ++r) {
      const f32x8 x = a.at[r * a.row_step + l * a.column_step] - f32x8{};
      fuse(x, low, sums[r][0]);
      fuse(x, high, sums[r][1]);
    }
  }
  for (int r = 0; r < Rows; ++r) {
    for (int half = 0; half < 2; ++half) {
      float* const to = c + r * n + half * 8;
      f32x8 before{};
      if (add) std::memcpy(&before, to, sizeof before);
      const f32x8 sum = before + sums[r][half];
      std::memcpy(to, &sum, sizeof sum);
    }
  }
}

// Sixteen columns of a product.
struct panel {
  std::int64_t m, n, k;
  strided a;
  const float* b;  // packed
  float* c;
  bool add;
};

template <int Rows>
[[gnu::always_inline]] inline void tile_at(const panel& of, std::int64_t row) {
  const strided rows{of.a.at + row * of.a.row_step, of.a.row_step, of.a.column_step};
  tile<Rows>(of.n, of.k, rows, of.b, of.c + row * of.n, of.add);
}

[[gnu::always_inline]] inline void all_tiles(const panel& of) {
  std::int64_t row = 0;
  for (; row + tile_rows <= of.m; row += tile_rows) tile_at<tile_rows>(of, row);
  switch (of.m - row) {
    case 1: return tile_at<1>(of, row);
    case 2: return tile_at<2>(of, row);
    case 3: return tile_at<3>(of, row);
    case 4: return tile_at<4>(of, row);
    case 5: return tile_at<5>(of, row);
    default: return;
  }
}

void compute_plainly(const panel& of) {
  all_tiles(of);
}

// By attributes and not by flags for the whole file, which would leak newer instructions into
// inline functions that older processors share.
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void compute_with_avx2(const panel& of) {
  all_tiles(of);
}
#endif

using compute_panel = void (*)(const panel&);
compute_panel best_here() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return compute_with_avx2;
#endif
  return compute_plainly;
}

}  // namespace

crew::crew(int threads) : gate_{threads} {
  for (int i = 1; i < threads; ++i) {
    others_.emplace_back([this] {
      for (;;) {
        gate_.arrive_and_wait();
        if (body_ == nullptr) return;
        work();
        gate_.arrive_and_wait();
      }
    });
  }
}

crew::~crew() {
  body_ = nullptr;
  gate_.arrive_and_wait();
  for (std::thread& other : others_) other.join();
}

void crew::each(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  next_ = 0;
  count_ = count;
  body_ = &body;
  gate_.arrive_and_wait();
  work();
  gate_.arrive_and_wait();
}

void crew::work() {
  for (std::int64_t i = next_++; i < count_; i = next_++) (*body_)(i);
}

void product(crew& with, std::int64_t m, std::int64_t n, std::int64_t k, const strided& a,
             const float* b, float* c, bool add) {
  static const compute_panel compute = best_here();
  with.each(n / product_columns, [&](std::int64_t which) {
    const std::int64_t column = which * product_columns;
    std::vector<float> packed(static_cast<std::size_t>(k * product_columns));
    for (std::int64_t l = 0; l < k; ++l) {
      std::copy_n(b + l * n + column, product_columns, packed.data() + l * product_columns);
    }
    compute({m, n, k, a, packed.data(), c + column, add});
  });
}

void transpose(crew& with, std::int64_t rows, std::int64_t columns, const float* from, float* to) {
  constexpr std::int64_t block = 16;
  with.each((rows + block - 1) / block, [&](std::int64_t part) {
    const std::int64_t end = std::min(rows, (part + 1) * block);
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t row = part * block; row < end; ++row) {
        to[column * rows + row] = from[row * columns + column];
      }
    }
  });
}

}  // namespace reprise::denoise
