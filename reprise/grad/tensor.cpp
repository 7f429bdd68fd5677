#include "reprise/grad/tensor.hpp"

#include <limits>

#include "reprise/base/error.hpp"

namespace reprise {

held_tensor::~held_tensor() {
  if (readers_.empty() || memory.data() == nullptr) return;
  device_state& device = made_on->device().state();
  try {
    const bool takes_waits = device.is_live(made_on->id()) && !device.is_captured(made_on->id());
    for (const stream_id reader : readers_) {
      const bool is_ordered =
          takes_waits && device.order_after(reader, *made_on, std::source_location::current());
      if (!is_ordered) device.wait_for({reader});
    }
  } catch (const error& failed) {
    report_error(failed.what());
  }
}

void held_tensor::read_on(stream_ref stream) {
  if (!made_on || made_on->id() == stream.id()) return;
  const std::lock_guard held{guard_};
  readers_.insert(stream.id());
}

std::shared_ptr<held_tensor> hold_memory(pool& from, dtype type, const dims& shape,
                                         stream_ref stream, std::source_location place) {
  auto held = std::make_shared<held_tensor>();
  held->at = {nullptr, type, shape, contiguous_strides(shape)};
  // A product that would wrap is as many bytes as there are, which no device has.
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  const bool wraps = shape.count() > most / size_of(type);
  held->memory = block{from, wraps ? most : held->at.bytes(), stream, place};
  held->at.data = held->memory.data();
  held->made_on = stream;
  return held;
}

void refuse_empty_tensor() {
  throw usage_error{
      "an empty tensor has no elements; give one that a call or make_tensor has made"};
}

}  // namespace reprise
