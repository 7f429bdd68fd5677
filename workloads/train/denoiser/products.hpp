// Matrix products for training on a CPU, and the threads that share them: train_network uses them.
//
// Each element of a result is summed by one thread in the order of k, by std::fma, so the bits
// depend neither on how many threads there are nor on the processor or its vectors.
#pragma once

#include <atomic>
#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace reprise::denoise {

// Threads that wait for a loop to share. One loop at a time, from the thread that owns the crew.
class crew {
 public:
  explicit crew(int threads);
  ~crew();
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  // body(i) for each i below `count`, in any order, on any thread; returns when all are done.
  void each(std::int64_t count, const std::function<void(std::int64_t)>& body);

 private:
  void work();

  std::barrier<> gate_;
  std::atomic<std::int64_t> next_{0};
  std::int64_t count_ = 0;
  const std::function<void(std::int64_t)>* body_ = nullptr;  // null: the crew is dismissed
  std::vector<std::thread> others_;
};

// Element (i, l) is at[i * row_step + l * column_step]: a matrix, or its transpose.
struct strided {
  const float* at;
  std::int64_t row_step;
  std::int64_t column_step;
};

// c [m, n] = a [m, k] b [k, n], or c += with `add`. n is a multiple of product_columns.
inline constexpr std::int64_t product_columns = 16;
void product(crew& with, std::int64_t m, std::int64_t n, std::int64_t k, const strided& a,
             const float* b, float* c, bool add);

// to [columns, rows] = from [rows, columns], transposed.
void transpose(crew& with, std::int64_t rows, std::int64_t columns, const float* from, float* to);

}  // namespace reprise::denoise
