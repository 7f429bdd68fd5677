// The backward of embedding: each row of the table gets the sum of what came back for its token.
//
//   tokens [m], dy [m, width], dtable [vocabulary, width], rule [1]
//     dtable[v, :] : the sum of dy[i, :] over the i with tokens[i] = v
//
// Once it is finished, the sum is put as the gradient_rule in a word of device memory says: under
// `add` the table's gradient then holds old + sum, rounded once; under `leave` it is not touched. A
// token that does not occur has a sum of 0, which is put too. Rows of tokens outside [0,
// vocabulary), which embedding makes zeros, are left out.
//
// The order of a sum is that of column_sum (ops/linear.hpp), with the rows of one token as its
// terms, in increasing i: parts of 64 of them, each begun at zero, and the parts' sums added in
// their order. So a row of dtable depends on the rows of its token alone and not on where among
// others they are, and the CPU and CUDA give the same bits.
//
// Nothing overlaps. Bodies throw usage_error when sizes do not fit `width`, when it is over
// 16,776,960, and when m is over 2,147,483,647. On CUDA every token's blocks look at all of
// `tokens`: for a vocabulary of some hundred, and not for one of 100,000.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/base/gradient_rule.hpp"
#include "reprise/kernel/kernel.hpp"
#include "reprise/ops/rows.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::int32_t> tokens, read<float> dy, inout<float> dtable,
                             read<std::int32_t> rule, std::int64_t width)>
    embedding_grad{"embedding_grad"};

void add_embedding_grad(kernel_registry& registry);

namespace ops {

void embedding_grad_cpu(cpu_call&, read<std::int32_t> tokens, read<float> dy, inout<float> dtable,
                        read<std::int32_t> rule, std::int64_t width);
void embedding_grad_cuda(cuda_call&, read<std::int32_t> tokens, read<float> dy, inout<float> dtable,
                         read<std::int32_t> rule, std::int64_t width);

inline constexpr int table_columns = 256;  // of a block of CUDA
inline constexpr std::int64_t widest_embedding_grad = table_columns * most_blocks_across;

// Rows of the table; throws usage_error where sizes do not fit.
std::int64_t embedding_grad_vocabulary(std::size_t tokens, std::size_t dy, std::size_t dtable,
                                       std::size_t rule, std::int64_t width);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
