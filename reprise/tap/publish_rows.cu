// publish_rows on CUDA: 16 bytes a thread where rows and tensor are aligned so, else 4 or 1.
//
// Floor: the bytes read once and written once. A thread walks the runs with the units that it
// takes, so blocks share the work evenly however short the runs are. The publication is the only
// store to host memory; nothing waits for it.
//
// For small tensors what counts is how long a block holds its place on a card that the model fills:
// each layer waits that long for one of its blocks. So what the plan says is one line, asked for at
// once, with a short row table in it.
#include <cuda/atomic>

#include "reprise/cuda/call.cuh"
#include "reprise/tap/publication_protocol.hpp"
#include "reprise/tap/publish_rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned publish_threads = 256;
constexpr std::uint64_t bytes_per_block = 8192;     // two units a thread: small tensors spread
constexpr std::uint64_t most_publish_blocks = 528;  // four to a multiprocessor
constexpr unsigned units_in_flight = 4;             // of a thread

// What a launch does, for each of its threads alike.
struct publish_step {
  std::uint64_t table;
  table_count count;
  std::uint64_t source_rows;
  std::uint64_t most;
  const std::uint64_t* plan;
  const std::int64_t* limit;  // or null
  bool has_own_table;
  std::uint64_t own_table[3];  // its first words

  __device__ std::int64_t word(std::uint64_t j) const {
    const bool is_own = has_own_table && j < 3;
    return static_cast<std::int64_t>(!is_own  ? plan[table + j]
                                     : j == 0 ? own_table[0]
                                     : j == 1 ? own_table[1]
                                              : own_table[2]);
  }
  __device__ table_run run(std::uint64_t i) const {
    if (i == 0 && limit != nullptr) {
      const std::int64_t n = *limit;
      return {0, run_within(0, n < 0 ? 0 : n, source_rows).rows, false};
    }
    return run_within(word(1 + 2 * i), word(2 + 2 * i), source_rows);
  }
};

template <class Unit>
__device__ void copy_runs(const publish_step& step, const std::uint8_t* source, std::uint8_t* ring,
                          std::uint64_t offset, std::uint64_t capacity, std::uint64_t row_bytes) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * publish_threads;
  std::uint64_t unit = std::uint64_t{blockIdx.x} * publish_threads + threadIdx.x;
  const std::uint64_t most = step.most / sizeof(Unit);
  std::uint64_t begin = 0;  // of the run, in units
  for (std::uint64_t i = 0; i < step.count.runs && begin < most; ++i) {
    const table_run run = step.run(i);
    const std::uint64_t whole = begin + run.rows * row_bytes / sizeof(Unit);
    const std::uint64_t end = whole < most ? whole : most;
    const auto* const from = reinterpret_cast<const Unit*>(source + run.first * row_bytes);
    // All of a turn is asked for before any of it is stored: the compiler cannot know that the ring
    // is not the source.
    for (std::uint64_t turn = unit; turn < end; turn += units_in_flight * stride) {
      Unit taken[units_in_flight];
#pragma unroll
      for (unsigned k = 0; k < units_in_flight; ++k) {
        const std::uint64_t one = turn + k * stride;
        if (one < end) taken[k] = from[one - begin];
      }
#pragma unroll
      for (unsigned k = 0; k < units_in_flight; ++k) {
        const std::uint64_t one = turn + k * stride;
        std::uint64_t to = offset + one * sizeof(Unit);
        if (to >= capacity) to -= capacity;
        if (one < end) *reinterpret_cast<Unit*>(ring + to) = taken[k];
      }
    }
    if (unit < end && i + 1 < step.count.runs) unit += (end - unit + stride - 1) / stride * stride;
    begin = end;
  }
}

// What the word says, which the last block alone has to know; and zeros behind the rows, since the
// drain copies whole units of 16 bytes.
__device__ std::uint64_t word_of(const publish_step& step, const std::uint64_t* says,
                                 std::uint64_t point, std::uint64_t row_bytes, std::uint8_t* ring,
                                 std::uint64_t offset, std::uint64_t capacity) {
  std::uint64_t bytes = 0;
  bool clamped = step.count.clamped;
  for (std::uint64_t i = 0; i < step.count.runs; ++i) {
    const table_run run = step.run(i);
    const std::uint64_t wanted = run.rows * row_bytes;
    const std::uint64_t room = step.most - bytes;
    bytes += wanted < room ? wanted : room;
    clamped = clamped || run.clamped || wanted > room;
  }
  for (std::uint64_t i = bytes; i < padded(bytes); ++i) {
    const std::uint64_t to = offset + i;
    ring[to < capacity ? to : to - capacity] = 0;
  }
  return publication::word(says[descriptor::tag], point, bytes, clamped);
}

// The policy of publication_protocol.hpp on a card (PTX memory model, causality order).
struct card_atomics {
  const publish_step& step;
  const std::uint64_t* says;
  std::uint64_t* arrivals;
  std::uint64_t* slot;
  std::uint64_t point;
  std::uint64_t row_bytes;
  std::uint8_t* ring;
  std::uint64_t offset;
  std::uint64_t capacity;

  static_assert(published_with.arrive == std::memory_order_acq_rel);
  __device__ std::uint64_t arrive() const {
    const cuda::atomic_ref<std::uint64_t, cuda::thread_scope_device> arrived{*arrivals};
    return arrived.fetch_add(1, cuda::memory_order_acq_rel);
  }
  __device__ void clear_arrivals() const { *arrivals = 0; }
  static_assert(published_with.publish == std::memory_order_release &&
                published_with.publishes_to_system);
  __device__ void publish() const {
    const std::uint64_t word = word_of(step, says, point, row_bytes, ring, offset, capacity);
    const cuda::atomic_ref<std::uint64_t, cuda::thread_scope_system> to{*slot};
    to.store(word, cuda::memory_order_release);
  }
};

__global__ void __launch_bounds__(publish_threads, 4)
    publish_rows_grid(read<std::uint8_t> source, read<std::int64_t> limit, read<std::uint64_t> plan,
                      write<std::uint8_t> ring, write<std::uint64_t> publications,
                      inout<std::uint64_t> arrivals, std::uint64_t index, std::uint64_t point,
                      std::uint64_t row_bytes) {
  const std::uint64_t begin = index * descriptor_words;
  const std::uint64_t* const line = plan.data() + begin;
  // No question waits for the answer of another.
  std::uint64_t says[descriptor::own_table];
  publish_step step{};
#pragma unroll
  for (std::size_t i = 0; i < descriptor::own_table; ++i) says[i] = line[i];
  const bool may_have_table = begin + descriptor::own_table + 3 <= plan.size();
#pragma unroll
  for (std::size_t i = 0; i < 3; ++i) {
    step.own_table[i] = may_have_table ? line[descriptor::own_table + i] : 0;
  }
  const std::uint64_t table = says[descriptor::table];
  if (table == 0 || table >= plan.size()) return;
  step.plan = plan.data();
  step.table = table;
  step.has_own_table = may_have_table && table == begin + descriptor::own_table;
  step.count = count_within(step.word(0), table, plan.size());
  if (step.count.off) return;
  step.source_rows = row_bytes == 0 ? 0 : source.size() / row_bytes;
  step.most = says[descriptor::most];
  step.limit = limit.size() != 0 ? limit.data() : nullptr;

  const std::uint64_t capacity = says[descriptor::capacity];
  std::uint64_t offset = says[descriptor::position];
  if (offset >= capacity) offset %= capacity;
  if ((says[descriptor::flags] & descriptor::marked) != 0) {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      auto* const marker = reinterpret_cast<std::uint64_t*>(ring.data() + offset);
      marker[0] = says[descriptor::replay];
      marker[1] = point;
    }
    offset += marker_bytes;
    if (offset >= capacity) offset -= capacity;
  }
  const auto alignment = reinterpret_cast<std::uintptr_t>(source.data()) | row_bytes;
  if (alignment % 16 == 0) {
    copy_runs<uint4>(step, source.data(), ring.data(), offset, capacity, row_bytes);
  } else if (alignment % 4 == 0) {
    copy_runs<std::uint32_t>(step, source.data(), ring.data(), offset, capacity, row_bytes);
  } else {
    copy_runs<std::uint8_t>(step, source.data(), ring.data(), offset, capacity, row_bytes);
  }

  // The barrier puts the block's bytes behind its thread 0, which releases them for all.
  __syncthreads();
  if (threadIdx.x != 0) return;
  card_atomics on{step,    says,      arrivals.data(), publications.data() + says[descriptor::slot],
                  point,   row_bytes, ring.data(),     offset,
                  capacity};
  publish_when_last(on, gridDim.x);
}

}  // namespace

void publish_rows_cuda(cuda_call& call, read<std::uint8_t> source, read<std::int64_t> limit,
                       read<std::uint64_t> plan, write<std::uint8_t> ring,
                       write<std::uint64_t> publications, inout<std::uint64_t> arrivals,
                       std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes) {
  const std::uint64_t wanted = (source.size() + bytes_per_block - 1) / bytes_per_block;
  const std::uint64_t bounded = wanted < most_publish_blocks ? wanted : most_publish_blocks;
  const auto blocks = static_cast<unsigned>(bounded == 0 ? 1 : bounded);
  publish_rows_grid<<<blocks, publish_threads, 0, call.stream()>>>(
      source, limit, plan, ring, publications, arrivals, index, point, row_bytes);
}

}  // namespace reprise::REPRISE_BODIES
