#include "reprise/device/graph.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/gate.hpp"
#include "reprise/device/ledger.hpp"
#include "reprise/device/slab_store.hpp"

namespace reprise {

namespace {

void require_device(device_ref device, stream_ref stream, std::string_view call) {
  if (stream.device() == device) return;
  throw usage_error{
      fmt::format("{}: the graph is of {}, the stream of {}; use a stream of the device it was "
                  "captured on",
                  call, device.name(), stream.device().name())};
}

}  // namespace

node_id next_node() {
  static std::atomic<std::uint64_t> last{0};
  return node_id{last.fetch_add(1, std::memory_order_relaxed) + 1};
}

std::uint64_t next_capture() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void require_toggle(std::string_view call, std::string_view label, node_kind kind) {
  if (can_be_toggled(kind)) return;
  throw usage_error{
      fmt::format("{}: '{}' is a node of kind {}, and only kernels, copies and fills can be "
                  "switched off or taken out; leave it where it is",
                  call, label, name_of(kind))};
}

void refuse_node(std::string_view call, node_id node) {
  throw usage_error{
      fmt::format("{}: node {} is not of this graph; use the ids that its capture gave out", call,
                  static_cast<std::uint64_t>(node))};
}

void refuse_driven(std::string_view call) {
  throw usage_error{
      fmt::format("{}: the executable is device driven, so its nodes are switched by kernels and "
                  "it is never changed by the host; instantiate a graph without driven nodes",
                  call)};
}

void refuse_spent(std::string_view call) {
  throw usage_error{
      fmt::format("{}: the graph was instantiated with device-driven nodes, which CUDA does once; "
                  "capture it again",
                  call)};
}

std::string_view name_of(node_kind kind) {
  switch (kind) {
    case node_kind::kernel: return "kernel";
    case node_kind::copy: return "copy";
    case node_kind::fill: return "fill";
    case node_kind::host_call: return "host call";
    case node_kind::empty: return "empty";
    case node_kind::other: return "other";
  }
  return "?";
}

void executable_ref::launch(site at) const {
  require_device(device_, at.stream, "launch");
  executable_id which = id_;
  if (launch_gate* const gate = device_.state().gate.load(std::memory_order_acquire);
      gate != nullptr && gate->before(which, at.stream) == verdict::refuse &&
      !REPRISE_MUTANT(launch_gate_is_not_heard)) {
    throw usage_error{
        "launch: the launch gate of the device refused it; ask who installed the gate, or take it "
        "off with set_gate(nullptr)"};
  }
  device_.api().launch(which, at.stream.id(), at.place);
}

owned_executable::owned_executable(device_ref device, executable_id id, std::size_t nodes)
    : device_{device}, id_{id}, nodes_{nodes} {
  device_.state().ledger->add_executable(nodes_);
}

owned_executable::owned_executable(owned_executable&& other) noexcept
    : device_{other.device_},
      id_{std::exchange(other.id_, executable_id::none)},
      nodes_{other.nodes_} {}

owned_executable& owned_executable::operator=(owned_executable&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  std::swap(nodes_, other.nodes_);
  return *this;
}

owned_executable::~owned_executable() {
  if (id_ == executable_id::none) return;
  device_.state().ledger->remove_executable(nodes_);
  device_.api().destroy(id_);
}

device_node fixed_executable::handle(node_id node, std::source_location from) const {
  return device_.api().device_handle(id_, node, from);
}

void executable_ref::enable(node_id node, bool on, std::source_location from) const {
  device_.api().enable(id_, node, on, from);
}

void executable::change(node_id node, const work& what) {
  // First: whatever happens then, no replay reads pinned memory that is gone.
  each_pinned(device_, what, [&](std::shared_ptr<const void> owner) {
    if (!REPRISE_MUTANT(change_keeps_no_pinned_memory)) device_.api().keep(id_, std::move(owner));
  });
  device_.api().set_parameters(id_, node, what);
}

void executable::change_copy_bytes(node_id node, const std::byte* from, std::size_t from_bytes,
                                   std::byte* to, std::size_t to_bytes,
                                   std::source_location place) {
  require_room(from_bytes, to_bytes, place);
  if (from_bytes == 0) {
    throw usage_error{"change_copy: no bytes are no copy; switch the node off instead"};
  }
  const std::array<access, 2> touches{access{from, from_bytes, false},
                                      access{to, from_bytes, true}};
  work what;
  what.kind = work_kind::copy;
  what.label = "copy";
  what.accesses = touches;
  what.place = place;
  what.copy = {to, from, from_bytes};
  change(node, what);
}

void executable::change_fill_bytes(node_id node, const fill_call& fill,
                                   std::source_location place) {
  if (fill.bytes == 0) {
    throw usage_error{"change_fill: no bytes are no fill; switch the node off instead"};
  }
  const access touches{fill.to, fill.bytes, true};
  work what;
  what.kind = work_kind::fill;
  what.label = "fill";
  what.accesses = {&touches, 1};
  what.place = place;
  what.fill = fill;
  change(node, what);
}

bool executable::update(const graph& from, std::source_location place) {
  if (!(from.device() == device_)) {
    throw usage_error{"update: the graph is of another device; capture it on this one"};
  }
  const bool taken = device_.api().update(id_, from.id(), place);
  if (!taken) landmark("update: refused");
  return taken;
}

std::vector<node_row> graph_ref::nodes(std::source_location from) const {
  return device_.api().nodes(id_, from);
}

graph::graph(graph&& other) noexcept
    : graph_ref{other.device_, std::exchange(other.id_, graph_id::none)} {}

graph& graph::operator=(graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  return *this;
}

graph::~graph() {
  if (id_ != graph_id::none) device_.api().destroy(id_);
}

executable graph::instantiate(site upload_on) const {
  require_device(device_, upload_on.stream, "instantiate");
  const std::size_t nodes = size();
  return {device_, device_.api().instantiate(id_, upload_on.stream.id(), upload_on.place), nodes};
}

fixed_executable graph::instantiate_device_driven(site upload_on,
                                                  std::span<const node_id> driven) && {
  require_device(device_, upload_on.stream, "instantiate_device_driven");
  const std::size_t nodes = size();
  fixed_executable made{
      device_,
      device_.api().instantiate_device_driven(id_, driven, upload_on.stream.id(), upload_on.place),
      nodes};
  device_.api().destroy(std::exchange(id_, graph_id::none));
  return made;
}

graph graph::without(std::span<const node_id> gone, std::source_location from) const {
  return {device_, device_.api().clone_without(id_, gone, from)};
}

open_capture::open_capture(site at) : stream_{at.stream} {
  stream_.device().state().slabs->settle();
  stream_.device().api().begin_capture(stream_.id(), at.place);
  ++stream_.device().state().open_captures;
}

open_capture::~open_capture() {
  if (!ended_ && !REPRISE_MUTANT(capture_is_left_open)) {
    landmark("capture: abandoned");
    stream_.device().api().abandon_capture(stream_.id());
  }
  if (!ended_) --stream_.device().state().open_captures;
}

graph open_capture::end(std::source_location from) {
  const graph_id made = stream_.device().api().end_capture(stream_.id(), from);
  ended_ = true;
  --stream_.device().state().open_captures;
  return {stream_.device(), made};
}

graph capture(site at, const std::function<void(stream_ref)>& body) {
  open_capture open{at};
  body(at.stream);
  return open.end(at.place);
}

}  // namespace reprise
