// linear: a layer's product with its weights and bias, and its backward.
//
//   x [m, k], w [n, k], bias [n], y [m, n]; dy, dx, dw and db are shaped as y, x, w and bias
//
//   linear               y[i, j]  = (sum over l of x[i, l] * w[j, l]) + bias[j]
//   linear_input_grad    dx[i, l] = sum over j of dy[i, j] * w[j, l]
//   linear_weight_grad   dw[j, l] : sum over i of dy[i, j] * x[i, l]
//   column_sum           db[j]    : sum over i of dy[i, j]
//   linear_parameter_grads        : both of these, of floats, in one launch where they are small
//
// An empty bias is none. The last three put their sum, once it is finished, as the gradient_rule in
// `rule`, a word of device memory, says: under `add` the buffer then holds old + sum, rounded once;
// under `leave` it is not touched. n and k are arguments, at least 1, and for the products at most
// 4,194,240; m may be 0, and then those sums are 0.
//
// A is float or bf16. Products of floats follow `precision` (base/matrix_precision.hpp); those of
// bf16, which have fewer bits, do not depend on it. What is written is f32, and so are all sums.
//
// The order of a sum is one on every device: parts of 64 neighbouring terms, each begun at zero and
// added up in increasing order, and the parts' sums added in increasing order. So a row of y or dx
// has the same bits at every m, in every position and on any number of threads, and the order of
// the sums over m depends on m alone. CUDA fuses each product with its addition, the CPU rounds it
// first: where products are exact in f32, as those of bf16 and of tf32 are unless they underflow,
// both give the same bits.
//
// What is written overlaps nothing else. Bodies throw usage_error when sizes do not fit n and k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/base/matrix_precision.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

template <class A>
inline constexpr kernel<void(read<A> x, read<A> w, read<float> bias, write<float> y, std::int64_t n,
                             std::int64_t k, matrix_precision)>
    linear{"linear"};
template <class A>
inline constexpr kernel<void(read<A> dy, read<A> w, write<float> dx, std::int64_t n, std::int64_t k,
                             matrix_precision)>
    linear_input_grad{"linear_input_grad"};
template <class A>
inline constexpr kernel<void(read<A> dy, read<A> x, inout<float> dw, read<std::int32_t> rule,
                             std::int64_t n, std::int64_t k, matrix_precision)>
    linear_weight_grad{"linear_weight_grad"};
inline constexpr kernel<void(read<float> dy, inout<float> db, read<std::int32_t> rule,
                             std::int64_t n)>
    column_sum{"column_sum"};
inline constexpr kernel<void(read<float> dy, read<float> x, inout<float> dw, inout<float> db,
                             read<std::int32_t> rule, read<std::int32_t> bias_rule, std::int64_t n,
                             std::int64_t k, matrix_precision)>
    linear_parameter_grads{"linear_parameter_grads"};

void add_linear(kernel_registry& registry);

namespace ops {

inline constexpr std::int64_t sum_part = 64;  // neighbouring terms that are added up first
inline constexpr std::int64_t widest_layer = 64 * most_blocks_across;  // in CUDA's largest tiles

// Rung: of lanes.hpp.
template <class Rung, class A>
void linear_cpu(cpu_call&, read<A> x, read<A> w, read<float> bias, write<float> y, std::int64_t n,
                std::int64_t k, matrix_precision precision);
template <class Rung, class A>
void linear_input_grad_cpu(cpu_call&, read<A> dy, read<A> w, write<float> dx, std::int64_t n,
                           std::int64_t k, matrix_precision precision);
template <class Rung, class A>
void linear_weight_grad_cpu(cpu_call&, read<A> dy, read<A> x, inout<float> dw,
                            read<std::int32_t> rule, std::int64_t n, std::int64_t k,
                            matrix_precision precision);
void column_sum_cpu(cpu_call&, read<float> dy, inout<float> db, read<std::int32_t> rule,
                    std::int64_t n);

template <class Rung>
void linear_parameter_grads_cpu(cpu_call&, read<float> dy, read<float> x, inout<float> dw,
                                inout<float> db, read<std::int32_t> rule,
                                read<std::int32_t> bias_rule, std::int64_t n, std::int64_t k,
                                matrix_precision precision);

template <class A>
void linear_cuda(cuda_call&, read<A> x, read<A> w, read<float> bias, write<float> y, std::int64_t n,
                 std::int64_t k, matrix_precision precision);
template <class A>
void linear_input_grad_cuda(cuda_call&, read<A> dy, read<A> w, write<float> dx, std::int64_t n,
                            std::int64_t k, matrix_precision precision);
template <class A>
void linear_weight_grad_cuda(cuda_call&, read<A> dy, read<A> x, inout<float> dw,
                             read<std::int32_t> rule, std::int64_t n, std::int64_t k,
                             matrix_precision precision);
void column_sum_cuda(cuda_call&, read<float> dy, inout<float> db, read<std::int32_t> rule,
                     std::int64_t n);
void linear_parameter_grads_cuda(cuda_call&, read<float> dy, read<float> x, inout<float> dw,
                                 inout<float> db, read<std::int32_t> rule,
                                 read<std::int32_t> bias_rule, std::int64_t n, std::int64_t k,
                                 matrix_precision precision);

// m of each, from sizes in elements. Throw usage_error where they do not fit.
std::int64_t linear_rows(std::size_t x, std::size_t w, std::size_t bias, std::size_t y,
                         std::int64_t n, std::int64_t k);
std::int64_t linear_input_grad_rows(std::size_t dy, std::size_t w, std::size_t dx, std::int64_t n,
                                    std::int64_t k);
std::int64_t linear_weight_grad_rows(std::size_t dy, std::size_t x, std::size_t dw,
                                     std::size_t rule, std::int64_t n, std::int64_t k);
std::int64_t column_sum_rows(std::size_t dy, std::size_t db, std::size_t rule, std::int64_t n);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
