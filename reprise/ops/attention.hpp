// attention: grouped-query attention over a key/value cache, and the append that fills it.
//
// The cache of one layer is two tensors [slots, kv_heads, capacity, head_dim], keys and values, of
// element type C. A slot is one request; position p of it is its p-th token. m rows are m tokens,
// of one request or of many:
//
//   cache_append   k, v [m, kv_heads * head_dim]: row i is narrowed to C and stored at
//                  (slots[i], head, positions[i]) for each kv head. No two rows name one place.
//   attention      q, out [m, heads * head_dim]; query head h reads kv head h / (heads / kv_heads):
//                    s_t = <q_i, key_t> / sqrt(head_dim)           t = 0 .. positions[i]
//                    out_i = sum_t exp(s_t - max s) value_t / sum_t exp(s_t - max s)
//                  of slot slots[i]; all in f32, narrowed once. The keys of row i itself are read
//                  from the cache: append first.
//
// A row whose slot or position lies outside the cache is padding: nothing is stored for it, and its
// attention is zero.
//
// Row-invariant: keys are cut into chunks of a fixed length from position 0 on, and a row's bits
// depend on its query, on its own keys and values and on how many they are; not on m, on the place
// in the batch, on capacity or on threads. (A, C) is (float, float), (float, bf16) or (bf16, bf16).
//
// Bodies throw usage_error when sizes do not fit the shape, or the shape its limits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/kernel/kernel.hpp"

namespace reprise::REPRISE_BODIES {

struct attention_shape {
  std::int64_t heads = 0;  // a multiple of kv_heads, at most 16 times as many
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  // a multiple of 8, at most 256
  std::int64_t capacity = 0;  // positions of a slot
};

template <class A, class C>
inline constexpr kernel<void(read<A> k, read<A> v, read<std::int32_t> slots,
                             read<std::int32_t> positions, write<C> keys, write<C> values,
                             attention_shape)>
    cache_append{"cache_append"};

// On CUDA it needs a workspace (at most `attention_workspace_bytes`).
template <class A, class C>
inline constexpr kernel<void(read<A> q, read<C> keys, read<C> values, read<std::int32_t> slots,
                             read<std::int32_t> positions, write<A> out, attention_shape)>
    attention{"attention"};

void add_attention(kernel_registry& registry);

namespace ops {

inline constexpr std::int64_t max_head_dim = 256;
inline constexpr std::int64_t max_group = 16;  // query heads that share a kv head

struct generic_rung;  // lanes.hpp
struct avx2_rung;
struct avx512_rung;

template <class A, class C>
void cache_append_cpu(cpu_call&, read<A> k, read<A> v, read<std::int32_t> slots,
                      read<std::int32_t> positions, write<C> keys, write<C> values,
                      attention_shape shape);
template <class A, class C>
void cache_append_cuda(cuda_call&, read<A> k, read<A> v, read<std::int32_t> slots,
                       read<std::int32_t> positions, write<C> keys, write<C> values,
                       attention_shape shape);

template <class Rung, class A, class C>
void attention_cpu(cpu_call&, read<A> q, read<C> keys, read<C> values, read<std::int32_t> slots,
                   read<std::int32_t> positions, write<A> out, attention_shape shape);
template <class A, class C>
void attention_cuda(cuda_call&, read<A> q, read<C> keys, read<C> values, read<std::int32_t> slots,
                    read<std::int32_t> positions, write<A> out, attention_shape shape);

// On CUDA every row's keys are cut into chunks of so many; each leaves a partial result.
inline constexpr std::int64_t cuda_attention_chunk = 128;

// How many rows one pass of the CUDA body takes, so that their partial results stay within 64 MiB
// (or are those of one row); and the bytes of that. A row has `heads` times one partial result per
// chunk of the capacity: head_dim sums, a maximum and a total.
std::int64_t attention_pass_rows(std::int64_t m, const attention_shape& shape);
std::size_t attention_workspace_bytes(std::int64_t m, const attention_shape& shape);

// Slots of the cache; throws usage_error unless the arguments that both kernels have fit the shape.
std::int64_t cache_slots(const char* op, std::size_t keys, std::size_t values, std::size_t slots,
                         std::size_t positions, const attention_shape& shape);

}  // namespace ops

}  // namespace reprise::REPRISE_BODIES
