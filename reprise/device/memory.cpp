#include "reprise/device/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/ledger.hpp"
#include "reprise/device/pool_state.hpp"

namespace reprise {

namespace {

constexpr std::size_t most =
    std::numeric_limits<std::size_t>::max() / 2;  // rounds without wrapping

// Sizes that no device has, such as a product of extents that wrapped.
void require_size(device_ref device, std::size_t bytes, std::source_location place) {
  if (bytes <= most) return;
  throw out_of_memory{{"allocate", device.name(), place}, bytes, device.memory(place).free};
}

}  // namespace

pool::pool(device_ref device, std::string label)
    : state_{std::make_shared<pool_state>(device, std::move(label))} {
  device.state().ledger->add(state_);
}

device_ref pool::device() const {
  return state_->device();
}
const std::string& pool::label() const {
  return state_->label();
}
std::size_t pool::bytes() const {
  return state_->bytes();
}
std::size_t pool::used() const {
  return state_->used();
}

block::block(pool& from, std::size_t bytes, stream_ref stream, std::source_location place)
    : block{from, bytes, stream, false, place} {}

block block::fresh(pool& from, std::size_t bytes, stream_ref stream, std::source_location place) {
  return {from, bytes, stream, true, place};
}

block::block(pool& from, std::size_t bytes, stream_ref stream, bool fresh,
             std::source_location place)
    : pool_{from.state_}, bytes_{bytes}, stream_{stream.id()} {
  if (!(stream.device() == pool_->device())) {
    throw usage_error{
        fmt::format("pool '{}' is of {}, the stream of {}; use a stream of the pool's "
                    "device",
                    pool_->label(), pool_->device().name(), stream.device().name())};
  }
  require_size(stream.device(), bytes, place);
  data_ =
      fresh ? pool_->allocate_fresh(bytes, stream, place) : pool_->allocate(bytes, stream, place);
}

block::~block() {
  if (data_ != nullptr) pool_->release(data_, bytes_, stream_);
}

pinned_block::pinned_block(device_ref device, std::size_t bytes, std::source_location place)
    : bytes_{bytes} {
  require_size(device, bytes, place);
  memory_ = std::make_shared<pinned_memory>(device.state(), bytes, place);
  device.state().ledger->add(memory_);
  data_ = memory_->data();
}

}  // namespace reprise
