// embedding: rows of a table, chosen by token.
//
//   tokens [m], table [vocabulary, width], out [m, width]:   out[i, :] = table[tokens[i], :]
//
// Rows are copied, or widened from bf16 to f32: exact, so that a row's bits depend on its token
// alone, on every device. A token outside [0, vocabulary) is the caller's mistake; its row becomes
// zeros, and nothing outside the table is read.
//
// tokens, table and out do not overlap. Bodies throw usage_error when sizes do not fit `width`.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

// (A, W) is (float, float), (float, bf16) or (bf16, bf16).
template <class A, class W>
inline constexpr kernel<void(read<std::int32_t>, read<W>, write<A>, std::int64_t width)> embedding{
    "embedding"};

void add_embedding(kernel_registry& registry);

namespace ops {

template <class A, class W>
void embedding_cpu(cpu_call&, read<std::int32_t> tokens, read<W> table, write<A> out,
                   std::int64_t width);
template <class A, class W>
void embedding_cuda(cuda_call&, read<std::int32_t> tokens, read<W> table, write<A> out,
                    std::int64_t width);

// Rows of the table; throws usage_error when sizes do not fit.
std::int64_t embedding_vocabulary(std::size_t tokens, std::size_t table, std::size_t out,
                                  std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
