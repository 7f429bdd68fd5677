// The equations of the memory op in double, one token at a time, as its golden cases state them:
// what the chunked kernels are held to, but for rounding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/sdm/chunk_case.hpp"

namespace reprise::test::sdm_chunk {

struct token_form {
  doubles bank, readings, errors;
  std::vector<doubles> before_chunk;  // the bank, by chunk
  doubles cotangent, m;               // of the bank, and of each token's delta
  std::vector<doubles> behind_chunk;  // the bank's cotangent, by chunk

  explicit token_form(const chunk_case& of)
      : bank{of.bank},
        readings(of.v.size(), 0.0),
        errors(of.v.size(), 0.0),
        cotangent{of.d_final},
        m(of.v.size(), 0.0),
        c_{of},
        s_{of.sizes} {
    for (std::int64_t t = 0; t < s_.tokens; ++t) {
      if (t % s_.chunk == 0) before_chunk.push_back(bank);
      for (std::int64_t p = 0; p < s_.streams; ++p) forward(p, p * s_.tokens + t);
    }
    behind_chunk.resize(at(s_.chunks()));
    for (std::int64_t t = s_.tokens - 1; t >= 0; --t) {
      if (t == s_.tokens - 1 || (t + 1) % s_.chunk == 0) behind_chunk[at(t / s_.chunk)] = cotangent;
      for (std::int64_t p = 0; p < s_.streams; ++p) backward(p, p * s_.tokens + t);
    }
  }

 private:
  // each(row, k, a) of the token's writes on rows of its stream.
  template <class Each>
  void each_write(std::int64_t p, std::int64_t token, const Each& each) const {
    for (std::int64_t w = 0; w < s_.writes; ++w) {
      const std::size_t i = at(token * s_.writes + w);
      if (!c_.is_row_of(p, c_.k_idx[i])) continue;
      each(at(c_.k_idx[i] * s_.width), c_.k_val[i], std::exp(c_.decay(token, w)));
    }
  }
  template <class Each>
  void each_read(std::int64_t p, std::int64_t token, const Each& each) const {
    for (std::int64_t n = 0; n < s_.reads; ++n) {
      const std::size_t i = at(token * s_.reads + n);
      if (c_.is_row_of(p, c_.q_idx[i])) each(at(c_.q_idx[i] * s_.width), c_.q_val[i]);
    }
  }

  void forward(std::int64_t p, std::int64_t token) {
    for (std::size_t j = 0; j < at(s_.width); ++j) {
      const std::size_t here = at(token * s_.width) + j;
      double e = c_.v[here];
      each_write(p, token,
                 [&](std::size_t row, double k, double a) { e -= k * a * bank[row + j]; });
      errors[here] = e;
      const double u = c_.beta[at(token)] * e;
      each_write(p, token, [&](std::size_t row, double k, double a) {
        bank[row + j] = a * bank[row + j] + k * u;
      });
      each_read(p, token, [&](std::size_t row, double q) { readings[here] += q * bank[row + j]; });
    }
  }

  void backward(std::int64_t p, std::int64_t token) {
    for (std::size_t j = 0; j < at(s_.width); ++j) {
      const std::size_t here = at(token * s_.width) + j;
      each_read(p, token,
                [&](std::size_t row, double q) { cotangent[row + j] += q * c_.dy[here]; });
      double du = 0;
      each_write(p, token,
                 [&](std::size_t row, double k, double) { du += k * cotangent[row + j]; });
      m[here] = du;
      const double dv = c_.beta[at(token)] * du;
      each_write(p, token, [&](std::size_t row, double k, double a) {
        cotangent[row + j] = a * (cotangent[row + j] - k * dv);
      });
    }
  }

  const chunk_case& c_;
  const sdm_sizes& s_;
};

}  // namespace reprise::test::sdm_chunk
