// Sessions: works of captured graphs are switched on and off for each launch, without recapture.
//
//   toggle_session session{gpu};                              // nothing is hooked yet
//   graph made = capture(s, [&](stream_ref c) {
//     capture_window window = session.open_window(c);
//     window.note(switch_key{0}, launch(c, producer, read(h), write(ring)));
//     window.note(switch_key{1}, launch(c, other, read(h), write(ring)));
//   });
//   executable step = made.instantiate(s);
//   session.bind(made, step);                                 // after warm-up; its launches are
//   session.set({switch_key{1}});                             // asked about from here on
//   step.launch(s);                                           // without work 0
//   session.set({switch_key{1}});                             // equal: no call of the device
//   session.clear();                                          // all on, nothing hooked
//
// A session is of one owner, a monitor, and lasts from its first window to `clear`. Before each
// launch on the device, of recordings too, its gate brings a bound executable up to date, leaves
// executables without works of the owner alone, and refuses (switch_refusal) those that have some
// and are not bound, or are of an earlier session. docs/toggle.md has the modes, and what to do
// after each refusal.
//
// The device outlives it. Threads: any; a set counts for launches that come after it. What ends a
// binding (clear, unbind, rebind, the session's end) comes when no other thread launches what is
// bound. An executable that is gone is noticed at the next bind or set, and until then a clone of
// its graph may be held; `unbind` ahead of its end lets go at once.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "reprise/device/graph.hpp"
#include "reprise/toggle/refusal.hpp"
#include "reprise/toggle/switch_set.hpp"
#include "reprise/toggle/toggle_counts.hpp"
#include "reprise/toggle/toggle_options.hpp"
#include "reprise/toggle/window.hpp"

namespace reprise {

class toggle_session {
 public:
  explicit toggle_session(device_ref device, toggle_options options = {});
  toggle_session(device_ref device, toggle_mode mode)
      : toggle_session{device, toggle_options{.mode = mode}} {}
  // As `clear`; what fails is reported.
  ~toggle_session();
  toggle_session(const toggle_session&) = delete;
  toggle_session& operator=(const toggle_session&) = delete;

  toggle_owner owner() const;

  // Of a stream that is being captured; several in one capture are one. Closing the last with
  // nothing bound takes the gate off; what was noted can be bound later all the same.
  capture_window open_window(stream_ref captured);
  // Whether a session of another owner has noted works of the capture that the stream is in: it
  // will switch the executable, and one session can.
  bool is_anothers(stream_ref captured) const;
  // A switchable work was launched into whatever capture the stream is in, by a caller who may know
  // no window: the guard then knows the graph, though nobody noted the work. Eager launches
  // (node_id::none) count for nothing.
  void counted(stream_ref captured, node_id work);

  // What was noted in the capture of this work will be switched by nobody: launches of it are let
  // through, and nothing has to be bound. For what cannot be bound after all.
  void withdraw(node_id work);

  // Pairs a graph that was captured in a window with an executable of it, with no launch in flight;
  // a clone that lacks works is as good. All works are on in it. The same pair again changes
  // nothing; another executable of the graph starts anew. Throws usage_error for a graph without
  // works of this session, works that were launched and not noted, and kinds that cannot be
  // switched, by name.
  void bind(graph_ref graph, executable_ref executable, twins others = twins::allowed);
  // Mode `device`: its driven works must be those that were noted, with words_for_planner. Brings
  // the words and waits for that, so it comes before the first launch.
  void bind(const fixed_executable& executable);
  // As if it had never been bound: for executables of somebody else, whose handles CUDA gives out
  // again, once their owner has instantiated anew.
  void rebind(graph_ref graph, executable_ref executable, twins others = twins::allowed);
  // All on in it, and its launches are refused; ahead of its end, where it is borrowed.
  void unbind(executable_ref executable);

  // What is on from the next launches on. Equal to the last: nothing is done. The first one
  // activates, and throws usage_error, naming what is wrong, when nothing is bound, something was
  // recorded and is not bound, bound graphs differ in their keys, or there were anomalies; each one
  // does for a key that nothing bound has, unless keys may differ. Host_eager: changes all bound
  // executables now, and refuses when one that it changes may be in flight; what fails then is
  // tried again before the next launch.
  void set(const switch_set& wanted);
  // Every key that is bound.
  switch_set keys() const;

  // Switches on what was switched off, forgets keys, bindings, sets and anomalies, and takes the
  // gate off if no other session needs it. The next window begins a new session. In mode device
  // waits for the copy that switches on.
  void clear();

  bool active() const;  // asked before launches, now
  // Why it is over before its `clear`; empty: it is not. All is as it was found then.
  std::string ended() const;
  toggle_counts counts() const;

 private:
  std::shared_ptr<session_core> core_;
};

}  // namespace reprise
