#include "tests/tap/kernels.hpp"

#include <atomic>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/tap/publish_rows.hpp"

namespace reprise::test::REPRISE_BODIES {

void raise_all_cpu(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by;
}

namespace {

// What is written in the place of the word; 0: nothing.
std::uint64_t word_with_fault(std::uint64_t word, std::uint64_t* slot) {
  publication_fault& fault = next_fault;
  if (fault.late_slot != nullptr) {
    note_touch(fault.late_slot, sizeof(std::uint64_t), true);
    std::atomic_ref{*fault.late_slot}.store(fault.late_word, std::memory_order_release);
    fault.late_slot = nullptr;
  }
  if (fault.what == publication_fault::none || fault.n-- != 0) return word;
  const auto what = fault.what;
  fault.what = publication_fault::none;
  constexpr std::uint64_t one_lap = std::uint64_t{1}
                                    << (publication::point_bits + publication::size_bits);
  switch (what) {
    case publication_fault::lost: return 0;
    case publication_fault::delayed:
      fault.late_slot = slot;
      fault.late_word = word;
      return 0;
    case publication_fault::overwritten: return word + one_lap;
    case publication_fault::overwritten_twice: return word + 2 * one_lap;
    case publication_fault::other_point: return word ^ std::uint64_t{1} << publication::size_bits;
    case publication_fault::none: break;
  }
  return word;
}

void faulty_publish_cpu(cpu_call&, read<std::uint8_t> source, read<std::int64_t> limit,
                        read<std::uint64_t> plan, write<std::uint8_t> ring,
                        write<std::uint64_t> publications, inout<std::uint64_t>,
                        std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes) {
  std::uint64_t word = rows_in_ring(source, limit, plan, ring, index, point, row_bytes);
  if (word == 0) return;
  const std::uint64_t slot = plan[index * descriptor_words + descriptor::slot];
  const pointer_to<std::uint64_t> at = publications.data() + slot;
  word = word_with_fault(word, address_of(at));
  if (word != 0) store_atomically(at, word, std::memory_order_release);
}

}  // namespace

void add_tap_kernels(kernel_registry& kernels) {
  kernels.add(raise_all, {{device_kind::cpu, "generic", raise_all_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(raise_all_cuda)}});
  kernels.add(publish_rows, {{.device = device_kind::cpu,
                              .arch = "generic",
                              .body = faulty_publish_cpu,
                              .replace = true}});
}

}  // namespace reprise::test::REPRISE_BODIES
