// Kernels and raw CUDA calls that these tests need, behind declarations without CUDA types.
#pragma once

#include <cstddef>
#include <source_location>
#include <string_view>

#include "reprise/device/enqueue.hpp"

namespace reprise::test {

// A CUDA body as the seam calls it: with a cuda_call and the packed arguments.
using body = void (*)(void* call, const std::byte* arguments);

// data[i] += by
struct add_arguments {
  float* data;
  std::size_t count;
  float by;
};
void add(void* call, const std::byte* arguments);

struct no_arguments {};
void launch_too_many_threads(void* call, const std::byte* arguments);  // 4096 in one block

template <class Arguments>
node_id enqueue_kernel(stream_ref stream, std::string_view label, body run,
                       const Arguments& arguments,
                       std::source_location place = std::source_location::current()) {
  work what;
  what.kind = work_kind::kernel;
  what.label = label;
  what.place = place;
  what.kernel = {run, reinterpret_cast<const std::byte*>(&arguments), sizeof arguments, {}};
  return enqueue(stream, what);
}

// The error slot of this thread as it is, not cleared.
int error_slot();

void synchronize_native(void* native_stream);

// A kernel of someone else, on the stream that `external` hands out.
void add_native(void* native_stream, float* data, std::size_t count, float by);

// Pinned memory that the device under test knows nothing of.
float* allocate_foreign_pinned(std::size_t count);
void free_foreign_pinned(float* block);

// Whether this process has made the card's context; asks the driver itself, not the runtime.
bool context_is_active(int ordinal);

}  // namespace reprise::test
