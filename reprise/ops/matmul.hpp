// matmul: a row-major product with the weights as checkpoints store them.
//
//   x [m, k], w [n, k], y [m, n]:   y[i, j] = sum over l of x[i, l] * w[j, l]
//
// `matmul_add` adds that sum to y, once, in f32, before y is narrowed. n and k are arguments; m is
// x.size() / k and may be 0.
//
// Row-invariant: a row of y has the same bits at every m, in every position and on any number of
// threads. The order of the sum over k is fixed by (n, k, element types, device) alone: on the CPU
// the sixteen lanes of lanes.hpp, on CUDA the one that matmul.cu describes. All sums are f32.
//
// x, w and y do not overlap. Bodies throw usage_error when sizes do not fit n and k.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// (A, W) is (float, float), (float, bf16) or (bf16, bf16).
template <class A, class W>
inline constexpr kernel<void(read<A>, read<W>, write<A>, std::int64_t n, std::int64_t k)> matmul{
    "matmul"};
template <class A, class W>
inline constexpr kernel<void(read<A>, read<W>, inout<A>, std::int64_t n, std::int64_t k)>
    matmul_add{"matmul_add"};

void add_matmul(kernel_registry& registry);

namespace ops {

struct generic_rung;  // lanes.hpp
struct avx2_rung;
struct avx512_rung;

template <class Rung, class A, class W>
void matmul_cpu(cpu_call&, read<A> x, read<W> w, write<A> y, std::int64_t n, std::int64_t k);
template <class Rung, class A, class W>
void matmul_add_cpu(cpu_call&, read<A> x, read<W> w, inout<A> y, std::int64_t n, std::int64_t k);

template <class A, class W>
void matmul_cuda(cuda_call&, read<A> x, read<W> w, write<A> y, std::int64_t n, std::int64_t k);
template <class A, class W>
void matmul_add_cuda(cuda_call&, read<A> x, read<W> w, inout<A> y, std::int64_t n, std::int64_t k);

// m of a product of these sizes (in elements); throws usage_error when there is none.
std::int64_t matmul_rows(std::size_t x, std::size_t w, std::size_t y, std::int64_t n,
                         std::int64_t k);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
