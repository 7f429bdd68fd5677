// publish_taken: says for all producers of a launch what they have taken
// (publication_protocol.hpp). Runs behind them, once.
//
//   plan, u64: descriptors of this step; they say the slot of each
//   taken [n], u64: the publication word of producer i, or 0 where it took nothing; 0 afterwards
//   publications, u64, pinned: one word for each slot
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"
#include "reprise/tap/plan_words.hpp"

namespace reprise::REPRISE_BODIES {

inline constexpr kernel<void(read<std::uint64_t> plan, inout<std::uint64_t> taken,
                             write<std::uint64_t> publications)>
    publish_taken{"publish_taken"};

void add_publish_taken(kernel_registry& registry);

void publish_taken_cpu(cpu_call&, read<std::uint64_t> plan, inout<std::uint64_t> taken,
                       write<std::uint64_t> publications);
void publish_taken_cuda(cuda_call&, read<std::uint64_t> plan, inout<std::uint64_t> taken,
                        write<std::uint64_t> publications);

}  // namespace reprise::REPRISE_BODIES

#if !defined(REPRISE_CHECKED)
namespace reprise::checked {

void add_publish_taken(kernel_registry& registry);  // its checked body

}  // namespace reprise::checked
#endif
