// bring: copies an input of a call into the static memory that its backward will read, or what a
// call hands out to where its caller wants it, as a node of the recording, so that a replay copies
// nothing itself.
//
//   from [bytes] -> to [bytes], u8; either may lie behind a word. A null word as `to` is nowhere:
//   nothing is copied. They do not overlap. Throws usage_error when the sizes differ.
#pragma once

#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint8_t> from, write<std::uint8_t> to)> bring{"bring"};

void add_bring(kernel_registry& registry);

void bring_cpu(cpu_call&, read<std::uint8_t> from, write<std::uint8_t> to);
void bring_cuda(cuda_call&, read<std::uint8_t> from, write<std::uint8_t> to);
void check_bring(std::size_t from, std::size_t to);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_bring(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
