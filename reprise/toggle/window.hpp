// A capture window: while it is open, each switchable launch says which work it became.
//
//   capture_window window = session.open_window(stream);    // of a stream that is being captured
//   window.note(switch_key{5}, launch(stream, producer, …));
//
// It closes at its end; by an exception it closes without a trace. What cannot be used is counted
// as an anomaly instead of thrown, since a capture is under way, and the session refuses to switch
// with the first of them as its reason. One thread, that of the capture; not beyond its session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>

#include "reprise/device/device.hpp"
#include "reprise/device/view.hpp"
#include "reprise/toggle/switch_set.hpp"

namespace reprise {

struct capture_stamp;
struct session_core;

// For the planner of a graph in device mode: `launch(s, switch_nodes, read(handles), read(on))`,
// ahead of the works that it switches.
struct planner_views {
  view<std::uint64_t> handles;
  view<std::uint8_t> on;
};

class capture_window {
 public:
  capture_window(capture_window&& other) noexcept;
  capture_window& operator=(capture_window&&) = delete;
  ~capture_window();

  // The work that this key switches, as its launch returned it.
  void note(switch_key key, node_id work) { note(std::span{&key, 1}, work); }
  // One work with several keys: on while either is.
  void note(std::initializer_list<switch_key> keys, node_id work) {
    note(std::span{keys.begin(), keys.size()}, work);
  }
  void note(std::span<const switch_key> keys, node_id work);

  // Words for a planner of `works` works, at least as many as are noted and at least one is. Once
  // in a capture; throws usage_error in another mode than `device`.
  planner_views words_for_planner(std::size_t works);

 private:
  friend class toggle_session;
  capture_window(std::shared_ptr<session_core> session, stream_ref captured);

  std::shared_ptr<session_core> session_;  // null: moved from
  stream_ref captured_;
  std::shared_ptr<capture_stamp> stamp_;  // null: the stream is not being captured
  std::size_t noted_before_ = 0;
  std::uint64_t anomalies_before_ = 0;
  int exceptions_before_ = 0;
};

}  // namespace reprise
