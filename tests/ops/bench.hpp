// A device on which a test of an op puts its inputs and launches one kernel.
//
// Memory of a bench has guards around it: `take` fails the test when a kernel wrote beside its
// output. `shifted` puts a span at an odd place, where no vector access is aligned.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "reprise/device/enqueue.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/kernel/launch.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/lending_stream.hpp"

namespace reprise::test {

template <class T>
T poison() {
  T value;
  std::memset(&value, 0xa5, sizeof value);
  return value;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

enum class place { aligned, shifted };

template <class T>
class guarded {
 public:
  static constexpr std::size_t guard = 64;  // elements

  guarded(pool& from, std::size_t count, stream_ref stream, place where)
      : whole_{from, count + 2 * guard, stream},
        first_{guard - (where == place::shifted ? 1 : 0)},
        count_{count} {}

  view<T> all() const { return whole_; }
  view<T> span() const { return all().subview(first_, count_); }
  operator view<T>() const { return span(); }
  std::size_t first() const { return first_; }

 private:
  buffer<T> whole_;
  std::size_t first_;
  std::size_t count_;
};

class op_bench {
 public:
  explicit op_bench(std::string_view spec, int threads = 0)
      : device_{open_for_test(spec, threads)}, pool_{device_}, stream_{device_} {}

  const stream& on() const { return stream_; }

  template <class T>
  guarded<T> put(const std::vector<T>& values, place where = place::aligned) {
    guarded<T> memory{pool_, values.size(), stream_, where};
    std::vector<T> whole(memory.all().size(), poison<T>());
    std::copy(values.begin(), values.end(),
              whole.begin() + static_cast<std::ptrdiff_t>(memory.first()));
    upload(whole, memory.all());
    return memory;
  }

  template <class T>
  guarded<T> room(std::size_t count, place where = place::aligned) {
    return put(std::vector<T>(count, poison<T>()), where);
  }

  template <class T>
  std::vector<T> take(const guarded<T>& memory) {
    std::vector<T> whole(memory.all().size());
    copy(stream_, read<T>{memory.all()}, write<T>{view<T>{whole.data(), whole.size()}});
    stream_.synchronize();
    const std::size_t first = memory.first();
    const std::size_t end = first + memory.span().size();
    for (std::size_t i = 0; i < whole.size(); ++i) {
      if (i >= first && i < end) continue;
      if (same_bits(whole[i], poison<T>())) continue;
      ADD_FAILURE() << "element " << static_cast<std::ptrdiff_t>(i - first) << " of "
                    << memory.span().size() << " was written";
      break;
    }
    return {whole.begin() + static_cast<std::ptrdiff_t>(first),
            whole.begin() + static_cast<std::ptrdiff_t>(end)};
  }

 private:
  template <class T>
  void upload(const std::vector<T>& from, view<T> to) {
    copy(stream_, read<T>{view<const T>{from.data(), from.size()}}, write<T>{to});
    stream_.synchronize();  // `from` is pageable
  }

  device device_;
  pool pool_;
  stream stream_;
};

// Suites over every device: TEST_P(some_op, …) with bench().
class op_on_device : public ::testing::TestWithParam<std::string> {
 protected:
  op_bench& bench() { return bench_; }

 private:
  op_bench bench_{GetParam()};
};

inline std::string device_case(const ::testing::TestParamInfo<std::string>& param) {
  return test_name(param.param);
}

// Deterministic inputs: uniform on [-scale, scale).
template <class T>
std::vector<T> random_values(std::size_t count, std::uint64_t seed, float scale = 2.0f) {
  std::mt19937_64 draw{seed};
  std::vector<T> values(count);
  for (T& value : values) {
    const auto unit = static_cast<float>(static_cast<std::int64_t>(draw()) >> 40) * 0x1p-23f;
    value = narrow<T>(unit * scale);
  }
  return values;
}

template <class T>
std::vector<T> row_of(const std::vector<T>& values, std::size_t row, std::size_t width) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(row * width);
  return {first, first + static_cast<std::ptrdiff_t>(width)};
}

template <class T>
std::vector<T> rows_from(const std::vector<T>& values, std::size_t row, std::size_t width) {
  return {values.begin() + static_cast<std::ptrdiff_t>(row * width), values.end()};
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Element types, for templated checks: check(types<A, W>{}) for each pair that the ops have.
template <class A, class W>
struct types {};
template <class F>
void each_pair(F&& check) {
  check(types<float, float>{});
  check(types<float, bf16>{});
  check(types<bf16, bf16>{});
}

template <class T>
void expect_same_bits(const std::vector<T>& got, const std::vector<T>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (same_bits(got[i], want[i])) continue;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bf16>) {
      FAIL() << "element " << i << ": " << widen(got[i]) << " is not " << widen(want[i]);
    } else {
      FAIL() << "element " << i << ": " << got[i] << " is not " << want[i];
    }
  }
}

// Half the step between neighbours of T around 1, times a few: how far one rounding may be off.
template <class T>
constexpr double rounding = std::is_same_v<T, bf16> ? 0x1p-8 : 0x1p-21;

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double floor) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(static_cast<double>(widen(got[i])) - want[i]);
    ASSERT_LE(error, rounding<T> * std::abs(want[i]) + floor) << "element " << i;
  }
}

// Runs `body(workers)` where every cut is somewhere else: the call's pieces come in odd sizes and
// backwards. For bodies called directly.
inline worker_ref odd_pieces() {
  return {[](void*, std::int64_t count, worker_ref::piece body, void* context) {
            std::int64_t size = 1;
            for (std::int64_t last = count; last > 0; size = size % 7 + 2) {
              const std::int64_t first = last > size ? last - size : 0;
              body(context, first, last);
              last = first;
            }
          },
          nullptr, 8};
}

}  // namespace reprise::test
