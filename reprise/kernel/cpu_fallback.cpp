#include "reprise/kernel/cpu_fallback.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/cpu_call.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

// As no vector access of a body asks for more.
constexpr std::size_t alignment = 64;

// Host memory that lies as `begin` does between two multiples of the alignment.
class host_block {
 public:
  host_block(const void* begin, std::size_t bytes) : memory_(bytes + 2 * alignment) {
    const auto wanted = reinterpret_cast<std::uintptr_t>(begin) % alignment;
    const auto is = reinterpret_cast<std::uintptr_t>(memory_.data()) % alignment;
    first_ = (wanted + alignment - is) % alignment;
  }
  std::byte* data() { return memory_.data() + first_; }

 private:
  std::vector<std::byte> memory_;
  std::size_t first_ = 0;
};

work copy_of(const cpu_launch& what, std::source_location place, const std::byte* from,
             std::byte* to, std::span<const access> touches) {
  work copy;
  copy.kind = work_kind::copy;
  copy.label = what.kernel;
  copy.place = place;
  copy.accesses = touches;
  copy.copy = {to, from, touches[0].bytes};
  return copy;
}

// At the seam and not through the door, since the memory that it writes is this launch's own.
void bring(const cpu_launch& what, stream_ref on, std::source_location place,
           const view_image& one) {
  const std::array<access, 2> touches{access{one.begin, one.bytes, false},
                                      access{one.copy, one.bytes, true}};
  on.device().api().submit(on.id(), copy_of(what, place, one.begin, one.copy, touches));
}

void take_back(const cpu_launch& what, stream_ref on, std::source_location place,
               const image_map& images, const access& written) {
  if (written.bytes == 0) return;
  auto* const to = static_cast<std::byte*>(const_cast<void*>(written.begin));
  const std::byte* const from = images.copy_of(to);
  const std::array<access, 2> touches{access{from, written.bytes, false}, written};
  enqueue(on, copy_of(what, place, from, to, touches));
}

// Outside a capture. Memory that is only written is brought too: a declaration is an upper bound,
// and what the body leaves alone has to come back as it was.
void run_between_copies(const cpu_launch& what, stream_ref on, std::source_location place) {
  image_map images;
  for (const access& a : what.accesses) images.add(a.begin, a.bytes);
  std::vector<host_block> held;
  for (view_image& one : images.images()) {
    one.copy = held.emplace_back(one.begin, one.bytes).data();
    if (!REPRISE_MUTANT(fallback_brings_nothing)) bring(what, on, place, one);
  }
  on.synchronize(place);

  what.pack(images, [&](const std::byte* arguments) {
    const cell_row& cell = *what.cell;
    const std::size_t bytes =
        cell.workspace == nullptr ? 0 : cell.ask_workspace(cell.workspace, arguments);
    host_block workspace{nullptr, bytes};
    cpu_call call{{workspace.data(), bytes}, {}};
    cell.invoke(&call, arguments);
  });
  for (const access& a : what.accesses) {
    if (a.writes) take_back(what, on, place, images, a);
  }
}

}  // namespace

void run_on_cpu(const site& at, const cpu_launch& what) {
  const device_ref device = at.stream.device();
  const std::string why =
      fmt::format("kernel {} has no body for {} and runs its CPU body", what.kernel, device.name());
  const bool in_a_step = at.breaks.eagerly != nullptr;
  if (!in_a_step && at.stream.capturing()) {
    throw usage_error{
        fmt::format("{}, which a graph cannot hold; launch it before or after the capture, or "
                    "inside a step",
                    why)};
  }
  if (device.kernels()->first_fallback(what.cell->id)) {
    log_line(fmt::format("{}, with a copy there and back; add a cell for {}", why,
                         name_of(device.bodies())));
  }
  if (!in_a_step) return run_between_copies(what, at.stream, at.place);
  at.breaks.eagerly(at.breaks.owner, why, [what, place = at.place](stream_ref on) {
    run_between_copies(what, on, place);
  });
}

}  // namespace reprise
