#include "reprise/device/device.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/freed_memory.hpp"
#include "reprise/device/ledger.hpp"
#include "reprise/device/shown_work.hpp"
#include "reprise/device/slab_store.hpp"

namespace reprise {

device_state::device_state(std::unique_ptr<device_api> implementation,
                           std::shared_ptr<const kernel_table> kernels)
    : table{std::move(kernels)},
      slabs{std::make_unique<slab_store>(*this)},
      ledger{std::make_unique<memory_ledger>()},
      freed{std::make_unique<freed_memory>()},
      api{std::move(implementation)} {}

device_state::~device_state() {
  api->settle();  // what it closes may hold pools and pinned memory
  const std::size_t leased = slabs->leased_bytes();
  const std::size_t pinned = ledger->pinned_bytes();
  const std::size_t executables = ledger->executables();
  if (leased != 0 || !live_streams.empty() || pinned != 0 || executables != 0) {
    report_error(fmt::format(
        "{} was closed while {} bytes of pools, {} pinned bytes, {} executables and {} streams "
        "were still held; destroy them before the device",
        api->traits().name, leased, pinned, executables, live_streams.size()));
  }
  ledger->close();  // what a graph that is still held owns stays for the process
  slabs.reset();    // it asks the rest of this about streams
}

bool device_state::is_live(stream_id stream) const {
  const std::lock_guard lock{streams_guard};
  return live_streams.contains(stream) || borrowed_streams.contains(stream);
}

void device_state::adopt(stream_id borrowed) {
  const std::lock_guard lock{streams_guard};
  borrowed_streams.insert(borrowed);
}

void device_state::release(stream_id borrowed) {
  const std::lock_guard lock{streams_guard};
  borrowed_streams.erase(borrowed);
}

// Under the guard, so that no other thread destroys the stream meanwhile.
bool device_state::is_captured(stream_id stream) noexcept {
  try {
    const std::lock_guard lock{streams_guard};
    const bool live = live_streams.contains(stream) || borrowed_streams.contains(stream);
    return live && api->capturing(stream);
  } catch (const std::exception& failure) {
    report_error(failure.what());
    return false;
  }
}

namespace {

enum class passing : std::uint8_t { recorded, done, not_now };

// Where the stream is now, as an event. Under the guard, so that no other thread destroys it
// meanwhile. `not_now`: an event of a captured stream would draw others into its capture, and one
// that is being destroyed takes none.
passing record_on(stream_id stream, device_state& state, std::optional<event>& passed,
                  std::source_location place) {
  const std::lock_guard lock{state.streams_guard};
  if (state.dying_streams.contains(stream) && !REPRISE_MUTANT(dying_stream_counts_as_gone)) {
    return passing::not_now;
  }
  if (!state.live_streams.contains(stream) && !state.borrowed_streams.contains(stream)) {
    return passing::done;
  }
  passed.emplace(device_ref{state}, place);
  if (passed->record_outside(stream, place)) return passing::recorded;
  passed.reset();
  return passing::not_now;
}

}  // namespace

bool device_state::order_after(stream_id before, stream_ref after, std::source_location place) {
  std::optional<event> passed;
  const passing how = record_on(before, *this, passed, place);
  if (passed) passed->wait(after, place);
  return how != passing::not_now;
}

bool device_state::wait_for(const std::set<stream_id>& streams) {
  const auto here = std::source_location::current();
  std::vector<event> all;
  for (const stream_id stream : streams) {
    std::optional<event> passed;
    if (record_on(stream, *this, passed, here) == passing::not_now) return false;
    if (passed) all.push_back(std::move(*passed));
  }
  for (const event& passed : all) passed.synchronize(here);
  return true;
}

memory_figures device_ref::memory(std::source_location from) const {
  return api().memory(from);
}

std::size_t device_ref::pinned_bytes() const {
  return state_->ledger->pinned_bytes();
}

void device_ref::trim() const {
  if (state_->open_captures == 0) state_->api->settle();  // what is gone may hold pools
  state_->slabs->trim();
}

launch_gate* device_ref::set_gate(launch_gate* gate) const {
  return state_->gate.exchange(gate);
}

device::device(std::unique_ptr<device_api> implementation,
               std::shared_ptr<const kernel_table> kernels)
    : state_{std::make_unique<device_state>(std::move(implementation), std::move(kernels))} {}

void stream_ref::synchronize(std::source_location from) const {
  device_.api().synchronize(id_, from);
  tell_waited(id_);
}

stream::stream(device_ref device, std::source_location from)
    : stream{device, stream_priority::usual, from} {}

stream::stream(device_ref device, stream_priority priority, std::source_location from)
    : device_{device}, id_{device.api().create_stream(priority, from)} {
  const std::lock_guard lock{device_.state().streams_guard};
  device_.state().live_streams.insert(id_);
}

stream::stream(stream&& other) noexcept
    : device_{other.device_}, id_{std::exchange(other.id_, stream_id::none)} {}

stream& stream::operator=(stream&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  return *this;
}

stream::~stream() {
  if (id_ == stream_id::none) return;
  device_state& state = device_.state();
  {
    const std::lock_guard lock{state.streams_guard};
    state.live_streams.erase(id_);
    state.dying_streams.insert(id_);
  }
  device_.api().destroy(id_);
  // The device may have given the id to a new stream by now; that one is in the other set.
  const std::lock_guard lock{state.streams_guard};
  state.dying_streams.erase(state.dying_streams.find(id_));
}

void stream::synchronize(std::source_location from) const {
  stream_ref{*this}.synchronize(from);
}

event::event(device_ref device, std::source_location from)
    : device_{device}, id_{device.api().create_event(from)} {}

event::event(event&& other) noexcept
    : device_{other.device_}, id_{std::exchange(other.id_, event_id::none)} {}

event& event::operator=(event&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  return *this;
}

event::~event() {
  if (id_ != event_id::none) device_.api().destroy(id_);
}

void event::record(stream_ref on, std::source_location from) {
  enqueue(on, work_kind::event_record, from);
}

namespace {

work of_event(work_kind kind, event_id event, std::source_location from) {
  work what;
  what.kind = kind;
  what.label = name_of(kind);
  what.place = from;
  what.event = event;
  return what;
}

}  // namespace

bool event::record_outside(stream_id on, std::source_location from) {
  if (!device_.api().record_outside(on, id_, from)) return false;
  show_to_watches({device_, on}, of_event(work_kind::event_record, id_, from));
  return true;
}

void event::wait(stream_ref on, std::source_location from) const {
  enqueue(on, work_kind::event_wait, from);
}

bool event::finished(std::source_location from) const {
  const bool passed = device_.api().finished(id_, from);
  if (passed) tell_waited(id_);
  return passed;
}

void event::synchronize(std::source_location from) const {
  device_.api().synchronize(id_, from);
  tell_waited(id_);
}

void event::enqueue(stream_ref on, work_kind kind, std::source_location from) const {
  if (!(on.device() == device_) && !REPRISE_MUTANT(event_of_another_device_is_taken)) {
    throw usage_error{
        fmt::format("{}: the event is of {}, the stream of {}; use an event of the "
                    "stream's device",
                    name_of(kind), device_.name(), on.device().name())};
  }
  reprise::enqueue(on, of_event(kind, id_, from));
}

}  // namespace reprise
