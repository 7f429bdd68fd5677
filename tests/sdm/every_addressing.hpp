// Calls of the kernels that stand around the memory op, for tests/ops/every_kernel.hpp: which slots
// a token has, and how much of them is written and kept.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "reprise/sdm/product_keys.hpp"
#include "reprise/sdm/projection.hpp"
#include "tests/ops/bench.hpp"

namespace reprise::test {

template <class Runner>
void run_addressing(Runner& with) {
  const auto in = []<class T>(const std::vector<T>& from) {
    return read<T>{view<const T>{from.data(), from.size()}};
  };
  const auto to = []<class T>(std::vector<T>& at) {
    return write<T>{view<T>{at.data(), at.size()}};
  };
  for (const auto& [n, k] : std::vector<std::array<std::size_t, 2>>{{1, 1}, {3, 9}, {40, 33}}) {
    const auto first = random_values<float>(6 * n, 37);
    const auto second = random_values<float>(6 * n, 38);
    std::vector<std::int32_t> idx(6 * k, -1);
    std::vector<float> val(6 * k, 9.0F);
    const auto keys = static_cast<std::int64_t>(n);
    const auto slots = static_cast<std::int64_t>(k);
    with.run(product_key_top, in(first), in(second), to(idx), to(val), keys, slots, 3);
    const std::vector<std::int32_t> chosen = idx;
    const std::vector<float> weights = val;
    const auto dval = random_values<float>(6 * k, 39);
    std::vector<float> dfirst(6 * n, 9.0F);
    std::vector<float> dsecond(6 * n, 9.0F);
    with.run(product_key_grad, in(chosen), in(weights), in(dval), to(dfirst), to(dsecond), keys,
             slots);
  }
  for (const std::int64_t rows : {1, 50}) {
    const std::int64_t width = 5, key_width = 3;
    const auto elements = [](std::int64_t count) { return static_cast<std::size_t>(count); };
    const auto z =
        random_values<float>(elements(rows * sdm::projected(width, key_width)), 40, 5.0F);
    std::vector<float> v(elements(rows * width), 9.0F);
    std::vector<float> queries(elements(2 * rows * key_width), 9.0F), others = queries;
    std::vector<float> beta(elements(rows), 9.0F), g = beta;
    with.run(sdm_split, in(z), to(v), to(queries), to(others), to(beta), to(g), width, key_width,
             4.0F);
    const auto dbeta = random_values<float>(beta.size(), 41);
    const auto dg = random_values<float>(beta.size(), 42);
    std::vector<float> dz(z.size(), 9.0F);
    with.run(sdm_join, in(v), in(queries), in(others), in(dbeta), in(dg), in(beta), in(g), to(dz),
             width, key_width);
  }
}

}  // namespace reprise::test
