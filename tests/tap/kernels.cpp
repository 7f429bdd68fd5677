#include "tests/tap/kernels.hpp"

#include <atomic>
#include <utility>

#include "reprise/device/cpu_call.hpp"
#include "reprise/kernel/registry.hpp"
#include "reprise/tap/publication_protocol.hpp"
#include "reprise/tap/publish_taken.hpp"
#include "reprise/tap/take_rows.hpp"

namespace reprise::test::REPRISE_BODIES {

void raise_all_cpu(cpu_call&, inout<float> x, float by) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += by;
}

namespace {

constexpr std::uint64_t one_lap = std::uint64_t{1}
                                  << (publication::point_bits + publication::size_bits);

// A word that was delayed, when its time has come.
void write_late_word() {
  publication_fault& fault = next_fault;
  if (fault.late_slot == nullptr || --fault.late_in != 0) return;
  note_touch(fault.late_slot, sizeof(std::uint64_t), true);
  std::atomic_ref{*fault.late_slot}.store(fault.late_word, std::memory_order_release);
  fault.late_slot = nullptr;
}

std::uint64_t rows_are = 0;  // bytes of a row, as the last producer was told

// What this publication meets.
publication_fault::kind fault_of_this_one() {
  publication_fault& fault = next_fault;
  if (fault.what == publication_fault::none || fault.said++ != fault.n) return fault.none;
  return std::exchange(fault.what, publication_fault::none);
}

// What is written in the place of the word; 0: nothing.
std::uint64_t word_under(publication_fault::kind what, std::uint64_t word, std::uint64_t row_bytes,
                         std::uint64_t* slot) {
  switch (what) {
    case publication_fault::lost: return 0;
    case publication_fault::delayed:
      next_fault.late_slot = slot;
      next_fault.late_word = word;
      next_fault.late_in = next_fault.by;
      return 0;
    case publication_fault::overwritten: return word + one_lap;
    case publication_fault::overwritten_twice: return word + 2 * one_lap;
    case publication_fault::other_point: return word ^ std::uint64_t{1} << publication::size_bits;
    case publication_fault::fewer_rows: return word - row_bytes;
    case publication_fault::none:
    case publication_fault::other_replay:
    case publication_fault::marker_of_other_point:
    case publication_fault::run_away: break;
  }
  return word;
}

// One launch's words of the plan, as its producer reads them.
struct said {
  read<std::uint64_t> plan;
  std::uint64_t index;
  std::uint64_t operator[](std::size_t word) const {
    return std::uint64_t{plan[index * descriptor_words + word]};
  }
};

// The marker of its payload says another replay, or another point, than the producer was told.
void relabel(const said& says, std::uint64_t point, bool other_replay, write<std::uint8_t> ring) {
  const std::uint64_t marker[2] = {says[descriptor::replay] + (other_replay ? 1 : 0),
                                   other_replay ? point : point + 1};
  write_elements(marker, marker_bytes,
                 ring.data() + says[descriptor::position] % says[descriptor::capacity]);
}

// Over the payloads that lie behind its own.
void run_over(const said& says, std::uint64_t word, std::uint64_t more, write<std::uint8_t> ring) {
  constexpr std::uint8_t rubbish[payload_alignment] = {0xee, 0xee, 0xee, 0xee};
  const std::uint64_t payload = padded(marker_bytes + publication::bytes_of(word));
  for (std::uint64_t k = 1; k <= more; ++k) {
    for (std::uint64_t i = 0; i < payload; i += payload_alignment) {
      const std::uint64_t at = says[descriptor::position] + k * payload + i;
      write_elements(rubbish, payload_alignment, ring.data() + at % says[descriptor::capacity]);
    }
  }
}

// Into the slots behind its own.
void run_away(const said& says, std::uint64_t word, std::uint64_t more,
              write<std::uint64_t> publications) {
  for (std::uint64_t k = 1; k <= more; ++k) {
    const std::uint64_t place = says[descriptor::slot] + k;
    const std::uint64_t laps = place / publications.size();
    store_atomically(publications.data() + place % publications.size(), word + laps * one_lap,
                     std::memory_order_release);
  }
}

void faulty_take_cpu(cpu_call& call, read<std::uint8_t> source, read<std::int64_t> limit,
                     read<std::uint64_t> plan, write<std::uint8_t> ring, write<std::uint64_t> taken,
                     std::uint64_t index, std::uint64_t point, std::uint64_t row_bytes) {
  using kind = publication_fault::kind;
  rows_are = row_bytes;
  take_rows_cpu(call, source, limit, plan, ring, taken, index, point, row_bytes);
  const std::uint64_t word = *address_of(taken.data());
  publication_fault& fault = next_fault;
  if (word == 0 || fault.what == kind::none || fault.taken++ != fault.n) return;
  const said says{plan, index};
  const bool other_replay = fault.what == kind::other_replay;
  if (other_replay || fault.what == kind::marker_of_other_point) {
    relabel(says, point, other_replay, ring);
  }
  if (fault.what == kind::run_away) run_over(says, word, fault.by, ring);
}

struct faulty_publisher {
  read<std::uint64_t> plan;
  inout<std::uint64_t> words;
  write<std::uint64_t> publications;
  std::size_t index;

  std::uint64_t taken() const { return words[index]; }
  void publish(std::uint64_t word) const {
    const said says{plan, index};
    const pointer_to<std::uint64_t> at = publications.data() + says[descriptor::slot];
    write_late_word();
    const publication_fault::kind what = fault_of_this_one();
    const std::uint64_t put = word_under(what, word, rows_are, address_of(at));
    if (put != 0) store_atomically(at, put, std::memory_order_release);
    if (what == publication_fault::run_away) run_away(says, word, next_fault.by, publications);
  }
  void take_back() const { words[index] = 0; }
};

void faulty_publish_cpu(cpu_call&, read<std::uint64_t> plan, inout<std::uint64_t> taken,
                        write<std::uint64_t> publications) {
  for (std::size_t i = 0; i < taken.size(); ++i) {
    faulty_publisher on{plan, taken, publications, i};
    publish_one(on);
  }
}

}  // namespace

void add_tap_kernels(kernel_registry& kernels) {
  kernels.add(raise_all, {{device_kind::cpu, "generic", raise_all_cpu},
                          {device_kind::cuda, "sm_80", REPRISE_CUDA_BODY(raise_all_cuda)}});
  kernels.add(
      take_rows,
      {{.device = device_kind::cpu, .arch = "generic", .body = faulty_take_cpu, .replace = true}});
  kernels.add(publish_taken, {{.device = device_kind::cpu,
                               .arch = "generic",
                               .body = faulty_publish_cpu,
                               .replace = true}});
}

}  // namespace reprise::test::REPRISE_BODIES
