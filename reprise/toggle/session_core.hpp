// What a toggle_session is made of, shared with its windows and with the gate of its device.
//
// For this room's .cpp files; everything under the lock of the gate_hub.
#pragma once

#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "reprise/toggle/bound.hpp"
#include "reprise/toggle/gate_hub.hpp"
#include "reprise/toggle/toggle_counts.hpp"
#include "reprise/toggle/toggle_options.hpp"

namespace reprise {

struct session_core {
  session_core(device_ref of, toggle_options given);

  device_ref device;
  toggle_options options;
  gate_hub& hub;

  std::uint64_t number = 0;  // 0: not begun
  bool is_hooked = false;
  bool is_active = false;  // a set was asked for
  std::string ended_by;    // why it is over before its clear; empty: it is not
  int open_windows = 0;
  std::uint64_t loose_anomalies = 0;  // of windows that no capture has
  std::string loose_anomaly;

  switch_set wanted;
  std::uint64_t version = 0;  // 0: as found, all on
  std::uint64_t variant_uses = 0;
  std::list<bound> bindings;
  toggle_counts counts;

  std::unique_ptr<stream> home;  // of device mode: its words are taken there
  std::unique_ptr<pool> memory;

  // Begins, or goes on, and is asked before launches from here on.
  void begin();
  // A close with nothing bound: asked no more, and what was recorded is remembered.
  void pause_if_idle();
  // Of the capture that the stream is in; made where there is none yet and `make`.
  std::shared_ptr<capture_stamp> stamp_of(stream_ref captured, bool make);

  const switch_set* wanted_or_all() const { return version == 0 ? nullptr : &wanted; }
  void require_running(const char* call) const;
  void require_activation() const;
  // A capture of this session with works, of which nothing is bound; null: there is none.
  std::shared_ptr<capture_stamp> unbound() const;
  switch_set keys_of_all() const;
  // What a change that failed leads to: one more try, then the end of the session.
  [[noreturn]] void fail(bound& one, const char* call, const std::exception& failure);
  [[noreturn]] void refuse_part(bound& one);
  // Host_eager: all bound executables, of which none is in flight.
  void apply_now();
  // Those whose executables are gone.
  void drop_the_dead();

  // Ahead of a launch: brings the executable up to date and says which one runs.
  executable_id prepare(bound& one, stream_ref on);
  bound& add(bound made);
  void end(const std::string& why);
  // Everything as it was found.
  void restore() noexcept;
};

}  // namespace reprise
