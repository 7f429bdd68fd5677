#include "reprise/tap/take_rows.hpp"

#include <algorithm>

#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"

namespace reprise::REPRISE_BODIES {

namespace {

// `bytes` of the source to the payload's byte `at`; what crosses the end of the ring is split.
void put_payload(write<std::uint8_t> ring, std::uint64_t at, std::uint64_t capacity,
                 pointer_to<const std::uint8_t> from, std::uint64_t bytes) {
  const std::uint64_t offset = at % capacity;
  const std::uint64_t before_end = std::min(bytes, capacity - offset);
  copy_elements(from, before_end, ring.data() + offset);
  if (REPRISE_MUTANT(payload_is_not_split_at_the_end)) return;
  copy_elements(from + before_end, bytes - before_end, ring.data());
}

}  // namespace

void take_rows_cpu(cpu_call&, read<std::uint8_t> source, read<std::int64_t> limit,
                   read<std::uint64_t> plan, write<std::uint8_t> ring, write<std::uint64_t> taken,
                   std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes) {
  const auto says = [&](std::size_t word) {
    return std::uint64_t{plan[index * descriptor_words + word]};
  };
  const std::uint64_t table = says(descriptor::table);
  if (table == 0 || table >= plan.size()) return;
  const table_count count =
      count_within(static_cast<std::int64_t>(std::uint64_t{plan[table]}), table, plan.size());
  if (count.off) return;
  const std::uint64_t source_rows = row_bytes == 0 ? 0 : source.size() / row_bytes;
  const std::uint64_t capacity = says(descriptor::capacity);
  const std::uint64_t most = says(descriptor::most);
  std::uint64_t at = says(descriptor::position);
  if ((says(descriptor::flags) & descriptor::marked) != 0) {
    const std::uint64_t marker[2] = {says(descriptor::replay), point};
    write_elements(marker, marker_bytes, ring.data() + at % capacity);
    at += marker_bytes;
  }
  bool clamped = count.clamped;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < count.runs; ++i) {
    const bool limited = i == 0 && limit.size() != 0;
    const auto word = [&](std::uint64_t j) {
      return static_cast<std::int64_t>(std::uint64_t{plan[table + j]});
    };
    const table_run run =
        limited ? run_within(0, std::max<std::int64_t>(std::int64_t{limit[0]}, 0), source_rows)
                : run_within(word(1 + 2 * i), word(2 + 2 * i), source_rows);
    const std::uint64_t wanted = run.rows * row_bytes;
    const std::uint64_t taken = REPRISE_MUTANT(producer_writes_past_what_was_reserved)
                                    ? wanted
                                    : std::min(wanted, most - bytes);
    put_payload(ring, at + bytes, capacity, source.data() + run.first * row_bytes, taken);
    bytes += taken;
    clamped |= (run.clamped && !limited) || taken != wanted;
  }
  // The drain copies whole units of 16 bytes.
  const std::uint8_t zeros[payload_alignment] = {};
  write_elements(zeros, padded(at + bytes) - (at + bytes), ring.data() + (at + bytes) % capacity);
  taken[0] = publication::word(says(descriptor::tag), point, bytes, clamped);
}

void add_take_rows(kernel_registry& registry) {
  registry.add(take_rows, {{device_kind::cpu, "generic", take_rows_cpu},
                           {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(take_rows_cuda)}});
}

}  // namespace reprise::REPRISE_BODIES
