// sdm_split and sdm_join: what a memory layer's one product gives its parts, and what comes back.
//
//   z, dz [m, D + 4 K + 2], rows of
//     value D | write query, first half K, second half K | read query, first half K, second half K
//     | strength 1 | retention 1
//   v, dv [m, D]; first, second and their gradients [2 m, K]: rows of writes, then of reads;
//   beta, g and their gradients [m]
//
//   sdm_split   v, first, second: those columns of z
//               beta = 1 / (1 + e^-strength); g = log(1 / (1 + e^-(retention + offset)))
//   sdm_join    dz: the gradients in those columns, with d strength = dbeta beta (1 - beta) and
//               d retention = dg (1 - e^g)
//
// The same bits on the CPU and on CUDA; row-invariant. Bodies throw usage_error when sizes do not
// fit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/math.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<float> z, write<float> v, write<float> first, write<float> second,
                             write<float> beta, write<float> g, std::int64_t width,
                             std::int64_t key_width, float offset)>
    sdm_split{"sdm_split"};
inline constexpr kernel<void(read<float> dv, read<float> dfirst, read<float> dsecond,
                             read<float> dbeta, read<float> dg, read<float> beta, read<float> g,
                             write<float> dz, std::int64_t width, std::int64_t key_width)>
    sdm_join{"sdm_join"};

void add_sdm_projection(kernel_registry& registry);

namespace sdm {

// log(1 / (1 + e^-w)), at most 0: by way of e^-|w|, of which log(1 + e) is taken with e's own
// digits (as log(u) e / (u - 1) with u = 1 + e: Kahan).
REPRISE_HD inline float log_sigmoid(float w) {
  const float e = math::exp(w < 0.0f ? w : -w);
  const float u = math::add(1.0f, e);
  const float log_u = u == 1.0f ? e : math::mul(math::log(u), math::div(e, math::sub(u, 1.0f)));
  return w < 0.0f ? math::sub(w, log_u) : -log_u;
}

REPRISE_HD inline float dstrength(float dbeta, float beta) {
  return math::mul(dbeta, math::mul(beta, math::sub(1.0f, beta)));
}

// 1 - e^g of g <= 0; near 0 by its series, which is within 4e-9 of it at -0.01, and cancels
// nothing.
REPRISE_HD inline float lost_by(float g) {
  if (g < -0.01f) return math::sub(1.0f, math::exp(g));
  const float third = math::mul(math::mul(g, g), 0x1.555556p-3f);  // of 1/6
  return math::mul(-g, math::add(1.0f, math::add(math::mul(g, 0.5f), third)));
}

REPRISE_HD inline float dretention(float dg, float g) {
  return math::mul(dg, lost_by(g));
}

// Columns of z.
constexpr std::int64_t projected(std::int64_t width, std::int64_t key_width) {
  return width + 4 * key_width + 2;
}

void split_cpu(cpu_call&, read<float> z, write<float> v, write<float> first, write<float> second,
               write<float> beta, write<float> g, std::int64_t width, std::int64_t key_width,
               float offset);
void join_cpu(cpu_call&, read<float> dv, read<float> dfirst, read<float> dsecond, read<float> dbeta,
              read<float> dg, read<float> beta, read<float> g, write<float> dz, std::int64_t width,
              std::int64_t key_width);
void split_cuda(cuda_call&, read<float> z, write<float> v, write<float> first, write<float> second,
                write<float> beta, write<float> g, std::int64_t width, std::int64_t key_width,
                float offset);
void join_cuda(cuda_call&, read<float> dv, read<float> dfirst, read<float> dsecond,
               read<float> dbeta, read<float> dg, read<float> beta, read<float> g, write<float> dz,
               std::int64_t width, std::int64_t key_width);

// Rows; throw usage_error when sizes do not fit.
std::int64_t split_rows(std::size_t z, std::size_t v, std::size_t first, std::size_t second,
                        std::size_t beta, std::size_t g, std::int64_t width,
                        std::int64_t key_width);
std::int64_t join_rows(std::size_t dv, std::size_t dfirst, std::size_t dsecond, std::size_t dbeta,
                       std::size_t dg, std::size_t beta, std::size_t g, std::size_t dz,
                       std::int64_t width, std::int64_t key_width);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
