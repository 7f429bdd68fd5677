// The gradients of weights, decays, values and strengths, for all chunks at once, from what the
// backward of the chunks left (backward.hpp). X is f32 or f64.
//
// sdm_products, [P, N, C, C] of each chunk, with u = beta * error and dv = beta * m:
//   of_readings[t, s] = <dy[t], u[s]> for s <= t;  of_errors[t, s] = <dv[t], u[s]> for s < t;
//   zeros elsewhere and behind the chunk's last token. Columns are summed in parts of 64
//   neighbours, each from 0 in increasing order, and the parts added in increasing order.
//
// sdm_event_grads. On one slot everything is linear in the row before the chunk, M, and in the
// deltas of its writes, and the loss in the cotangent behind the chunk, G, and in those of its
// events. With earlier y one of {M: 1 at L = 0; write: k at its L} and later x one of {read: c at
// its L; write: -k at its L; G: 1 at the L of the run's end}, and the product of the two rows
// (of_state, of_cotangent, of_both, of_readings, of_errors) as <x, y>:
//   before(x, p)     = sum over y before p of c_y e^(L_x - L_y) <x, y>
//   dq of a read x   = before(x, x)
//   dk of a write p  = (sum over x after it of c_x e^(L_x - L_p) <x, p>) - before(p, p)
//   dg of a write p  = sum over x at or after it of c_x before(x, p)
// y in the order of time, M first; x in the order of time, G last; sums from 0; a term is
// (c * e) * <x, y> in the first two. The product with M of an event is its of_state, that with G
// its of_cotangent: their parts added in increasing order, from 0. No term is taken from a sum that
// holds it, so that a strong decay costs no digits.
//   dk and dg_by_write [P, T, W], dq [P, T, R]; those of events that are left out are 0.
//
// sdm_token_grads:  dv = beta * m,  dbeta = <m, error> (number.hpp),  dg [P, T, G]: dg_by_write, or
// for G = 1 its sum over w, in increasing order from 0.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/sdm/sizes.hpp"

namespace reprise::REPRISE_BODIES {

template <class X>
inline constexpr kernel<void(read<X> dy, read<X> m, read<X> errors, read<X> beta,
                             write<X> of_readings, write<X> of_errors, sdm_sizes)>
    sdm_products{"sdm_products"};
template <class X>
inline constexpr kernel<void(read<std::int32_t> order, read<std::int32_t> place,
                             read<std::int32_t> runs, read<X> k_val, read<X> q_val,
                             read<double> level, read<X> of_state, read<X> of_cotangent,
                             read<X> of_both, read<X> of_readings, read<X> of_errors, write<X> dk,
                             write<X> dq, write<X> dg_by_write, sdm_sizes)>
    sdm_event_grads{"sdm_event_grads"};
template <class X>
inline constexpr kernel<void(read<X> m, read<X> errors, read<X> beta, read<X> dg_by_write,
                             write<X> dv, write<X> dbeta, write<X> dg, sdm_sizes)>
    sdm_token_grads{"sdm_token_grads"};

void add_sdm_gradients(kernel_registry& registry);

namespace sdm {

template <class X>
void products_cpu(cpu_call&, read<X> dy, read<X> m, read<X> errors, read<X> beta,
                  write<X> of_readings, write<X> of_errors, sdm_sizes sizes);
template <class X>
void event_grads_cpu(cpu_call&, read<std::int32_t> order, read<std::int32_t> place,
                     read<std::int32_t> runs, read<X> k_val, read<X> q_val, read<double> level,
                     read<X> of_state, read<X> of_cotangent, read<X> of_both, read<X> of_readings,
                     read<X> of_errors, write<X> dk, write<X> dq, write<X> dg_by_write,
                     sdm_sizes sizes);
template <class X>
void token_grads_cpu(cpu_call&, read<X> m, read<X> errors, read<X> beta, read<X> dg_by_write,
                     write<X> dv, write<X> dbeta, write<X> dg, sdm_sizes sizes);
template <class X>
void products_cuda(cuda_call&, read<X> dy, read<X> m, read<X> errors, read<X> beta,
                   write<X> of_readings, write<X> of_errors, sdm_sizes sizes);
template <class X>
void event_grads_cuda(cuda_call&, read<std::int32_t> order, read<std::int32_t> place,
                      read<std::int32_t> runs, read<X> k_val, read<X> q_val, read<double> level,
                      read<X> of_state, read<X> of_cotangent, read<X> of_both, read<X> of_readings,
                      read<X> of_errors, write<X> dk, write<X> dq, write<X> dg_by_write,
                      sdm_sizes sizes);
template <class X>
void token_grads_cuda(cuda_call&, read<X> m, read<X> errors, read<X> beta, read<X> dg_by_write,
                      write<X> dv, write<X> dbeta, write<X> dg, sdm_sizes sizes);

}  // namespace sdm

}  // namespace reprise::REPRISE_BODIES
