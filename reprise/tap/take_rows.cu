// take_rows on CUDA: 16 bytes a thread where rows and tensor are aligned so, else 4 or 1.
//
// Floor: the bytes read once and written once. A thread walks the runs with the units that it
// takes, so blocks share the work evenly however short the runs are.
//
// For small tensors what counts is how long a block holds its place on a card that the model fills:
// each layer waits that long for one of its blocks. So what the plan says is one line, asked for at
// once, with a short row table in it; a block needs no more registers than one of a kernel that
// fills the card leaves behind when it ends; and nothing waits for a fence (publish_taken).
#include <algorithm>

#include "reprise/cuda/call.cuh"
#include "reprise/tap/take_rows.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

constexpr unsigned take_threads = 256;
constexpr unsigned units_in_flight = 2;  // of a thread
constexpr std::uint64_t bytes_per_block = take_threads * units_in_flight * 16;
constexpr std::uint64_t most_blocks = 2112;  // two waves: tensors of which few rows are taken

// What a launch does, for each of its threads alike.
struct taking {
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

// Blocks take turns, each of its own piece: what a block reads and writes lies together.
template <class Unit>
__device__ void take_runs(const taking& what, const std::uint8_t* source, std::uint8_t* ring,
                          std::uint64_t offset, std::uint64_t capacity, std::uint64_t row_bytes) {
  constexpr std::uint64_t piece = std::uint64_t{take_threads} * units_in_flight;
  const std::uint64_t stride = gridDim.x * piece;
  std::uint64_t turn = blockIdx.x * piece + threadIdx.x;  // its first unit
  const std::uint64_t most = what.most / sizeof(Unit);
  std::uint64_t begin = 0;  // of the run, in units
  for (std::uint64_t i = 0; i < what.count.runs && begin < most; ++i) {
    const table_run run = what.run(i);
    const std::uint64_t whole = begin + run.rows * row_bytes / sizeof(Unit);
    const std::uint64_t end = whole < most ? whole : most;
    const auto* const from = reinterpret_cast<const Unit*>(source + run.first * row_bytes);
    for (; turn < end; turn += stride) {
      // All of a turn is asked for before any of it is stored: the compiler cannot know that the
      // ring is not the source.
      Unit taken[units_in_flight];
#pragma unroll
      for (unsigned k = 0; k < units_in_flight; ++k) {
        const std::uint64_t one = turn + k * take_threads;
        if (one >= begin && one < end) taken[k] = from[one - begin];
      }
#pragma unroll
      for (unsigned k = 0; k < units_in_flight; ++k) {
        const std::uint64_t one = turn + k * take_threads;
        std::uint64_t to = offset + one * sizeof(Unit);
        if (to >= capacity) to -= capacity;
        if (one >= begin && one < end) *reinterpret_cast<Unit*>(ring + to) = taken[k];
      }
      // The rest of a piece that the run ends in is the next run's.
      if (turn + (units_in_flight - 1) * take_threads >= end && i + 1 < what.count.runs) break;
    }
    begin = end;
  }
}

// What is to be said, which one thread alone has to know; and zeros behind the rows, since the
// drain copies whole units of 16 bytes.
__device__ std::uint64_t word_of(const taking& what, std::uint64_t tag, std::uint64_t point,
                                 std::uint64_t row_bytes, std::uint8_t* ring, std::uint64_t offset,
                                 std::uint64_t capacity) {
  std::uint64_t bytes = 0;
  bool clamped = what.count.clamped;
  for (std::uint64_t i = 0; i < what.count.runs; ++i) {
    const table_run run = what.run(i);
    const std::uint64_t wanted = run.rows * row_bytes;
    const std::uint64_t room = what.most - bytes;
    bytes += wanted < room ? wanted : room;
    clamped = clamped || run.clamped || wanted > room;
  }
  for (std::uint64_t i = bytes; i < padded(bytes); ++i) {
    const std::uint64_t to = offset + i;
    ring[to < capacity ? to : to - capacity] = 0;
  }
  return publication::word(tag, point, bytes, clamped);
}

__global__ void __launch_bounds__(take_threads, 8)
    take_rows_grid(read<std::uint8_t> source, read<std::int64_t> limit, read<std::uint64_t> plan,
                   write<std::uint8_t> ring, write<std::uint64_t> taken, std::uint64_t index,
                   std::uint64_t point, std::uint64_t row_bytes) {
  const std::uint64_t begin = index * descriptor_words;
  const std::uint64_t* const line = plan.data() + begin;
  // No question waits for the answer of another.
  std::uint64_t says[descriptor::own_table];
  taking what{};
#pragma unroll
  for (std::size_t i = 0; i < descriptor::own_table; ++i) says[i] = line[i];
  const bool may_have_table = begin + descriptor::own_table + 3 <= plan.size();
#pragma unroll
  for (std::size_t i = 0; i < 3; ++i) {
    what.own_table[i] = may_have_table ? line[descriptor::own_table + i] : 0;
  }
  const std::uint64_t table = says[descriptor::table];
  if (table == 0 || table >= plan.size()) return;
  what.plan = plan.data();
  what.table = table;
  what.has_own_table = may_have_table && table == begin + descriptor::own_table;
  what.count = count_within(what.word(0), table, plan.size());
  if (what.count.off) return;
  what.source_rows = row_bytes == 0 ? 0 : source.size() / row_bytes;
  what.most = says[descriptor::most];
  what.limit = limit.size() != 0 ? limit.data() : nullptr;

  const bool is_first = blockIdx.x == 0 && threadIdx.x == 0;
  const std::uint64_t capacity = says[descriptor::capacity];
  std::uint64_t offset = says[descriptor::position];
  if (offset >= capacity) offset %= capacity;
  if ((says[descriptor::flags] & descriptor::marked) != 0) {
    if (is_first) {
      auto* const marker = reinterpret_cast<std::uint64_t*>(ring.data() + offset);
      marker[0] = says[descriptor::replay];
      marker[1] = point;
    }
    offset += marker_bytes;
    if (offset >= capacity) offset -= capacity;
  }
  const auto alignment = reinterpret_cast<std::uintptr_t>(source.data()) | row_bytes;
  if (alignment % 16 == 0) {
    take_runs<uint4>(what, source.data(), ring.data(), offset, capacity, row_bytes);
  } else if (alignment % 4 == 0) {
    take_runs<std::uint32_t>(what, source.data(), ring.data(), offset, capacity, row_bytes);
  } else {
    take_runs<std::uint8_t>(what, source.data(), ring.data(), offset, capacity, row_bytes);
  }
  if (!is_first) return;
  taken.data()[0] =
      word_of(what, says[descriptor::tag], point, row_bytes, ring.data(), offset, capacity);
}

}  // namespace

void take_rows_cuda(cuda_call& call, read<std::uint8_t> source, read<std::int64_t> limit,
                    read<std::uint64_t> plan, write<std::uint8_t> ring, write<std::uint64_t> taken,
                    std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes) {
  const std::uint64_t wanted = (source.size() + bytes_per_block - 1) / bytes_per_block;
  const auto blocks = static_cast<unsigned>(std::clamp<std::uint64_t>(wanted, 1, most_blocks));
  take_rows_grid<<<blocks, take_threads, 0, call.stream()>>>(source, limit, plan, ring, taken,
                                                             index, point, row_bytes);
}

}  // namespace reprise::REPRISE_BODIES
