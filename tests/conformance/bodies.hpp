// Raw CUDA that some cases need, behind declarations without CUDA types. Called on a card only.
#pragma once

#include <cstdint>

namespace reprise::test {

#if defined(REPRISE_HAS_CUDA)

// The CUDA error slot of this thread as it is, not cleared.
int native_error_slot();

// Two kernels of someone else on the stream that `external` hands out, each of which appends
// `digit` to the number.
void append_twice_native(void* native_stream, std::int32_t* number, std::int32_t digit);

// A kernel that appends `first`, and one behind a programmatic edge that waits for it by its grid
// and appends `second`.
void append_programmatically_native(void* native_stream, std::int32_t* number, std::int32_t first,
                                    std::int32_t second);

// An allocation and a release in the order of the stream that `external` hands out.
void allocate_natively(void* native_stream);

#else

inline void allocate_natively(void*) {}
inline int native_error_slot() {
  return 0;
}
inline void append_twice_native(void*, std::int32_t*, std::int32_t) {}
inline void append_programmatically_native(void*, std::int32_t*, std::int32_t, std::int32_t) {}

#endif

}  // namespace reprise::test
