#include "reprise/device/graph.hpp"

#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/device/slab_store.hpp"

namespace reprise {

namespace {

// Counts open captures for those who must not free memory meanwhile.
class open_capture {
 public:
  open_capture(stream_ref stream, std::source_location from) : stream_{stream} {
    stream_.device().state().slabs->settle();
    stream_.device().api().begin_capture(stream_.id(), from);
    ++stream_.device().state().open_captures;
  }
  ~open_capture() {
    if (!ended_) stream_.device().api().abandon_capture(stream_.id());
    --stream_.device().state().open_captures;
  }
  open_capture(const open_capture&) = delete;
  open_capture& operator=(const open_capture&) = delete;

  graph_id end(std::source_location from) {
    const graph_id made = stream_.device().api().end_capture(stream_.id(), from);
    ended_ = true;
    return made;
  }

 private:
  stream_ref stream_;
  bool ended_ = false;
};

}  // namespace

executable::executable(executable&& other) noexcept
    : device_{other.device_}, id_{std::exchange(other.id_, executable_id::none)} {}

executable& executable::operator=(executable&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  return *this;
}

executable::~executable() {
  if (id_ != executable_id::none) device_.api().destroy(id_);
}

void executable::launch(site at) const {
  if (!(at.stream.device() == device_)) {
    throw usage_error{
        "launch: the executable and the stream are of two devices; launch it on a "
        "stream of the device it was captured on"};
  }
  device_.api().launch(id_, at.stream.id(), at.place);
}

graph::graph(graph&& other) noexcept
    : device_{other.device_}, id_{std::exchange(other.id_, graph_id::none)} {}

graph& graph::operator=(graph&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(id_, other.id_);
  return *this;
}

graph::~graph() {
  if (id_ != graph_id::none) device_.api().destroy(id_);
}

std::size_t graph::nodes() const {
  return device_.api().node_count(id_);
}

executable graph::instantiate(site upload_on) const {
  if (!(upload_on.stream.device() == device_)) {
    throw usage_error{
        "instantiate: the graph and the stream are of two devices; upload it on a "
        "stream of the device it was captured on"};
  }
  return {device_, device_.api().instantiate(id_, upload_on.stream.id(), upload_on.place)};
}

graph capture(site at, const std::function<void(stream_ref)>& body) {
  open_capture open{at.stream, at.place};
  body(at.stream);
  return {at.stream.device(), open.end(at.place)};
}

}  // namespace reprise
