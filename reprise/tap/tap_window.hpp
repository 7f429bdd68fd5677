// A tap window: while it is open, whoever captures a graph of his own says where the tensors are
// that a monitor watches.
//
//   cudaStreamBeginCapture(theirs, …);                       // or capture(…): any open capture
//   {
//     tap_window window = eye.open_window(stream);
//     for (int layer = 0; layer < layers; ++layer) {
//       window.tap({"resid_pre", layer}, h);                 // a producer is forked here
//       window.before_write(h);                              // h is overwritten next
//       their_layer(theirs, …);
//     }
//   }                                                        // all are joined here
//   cudaStreamEndCapture(theirs, &graph);
//
// Works that others enqueue are not seen, so they say with `before_write` what they overwrite; who
// does not, joins at the window's end and must leave a tapped tensor alone until then. Works that
// are enqueued through Reprise are seen, and need no word.
//
// On a stream that is not being captured each tap publishes at once, as the marks of an eager step
// do; the window is one step, with the requests of monitor::plan_step. One thread, the one that
// runs the monitor's steps. The device and the stream outlive it; the monitor may go before.
#pragma once

#include <memory>

#include "reprise/device/device.hpp"
#include "reprise/device/tensor.hpp"
#include "reprise/replay/marks.hpp"

namespace reprise {

class foreign_taps;

class tap_window {
 public:
  tap_window(tap_window&& other) noexcept;
  tap_window& operator=(tap_window&&) = delete;
  // Closes. Left by an exception, it joins what it forked and notes nothing: those works are in the
  // capture, if that goes on, and publish nothing ever. What fails goes to the error handler.
  ~tap_window();

  // "This is resid_pre 5", as the stream has it now: its rows are taken where the monitor watches
  // the point. Throws usage_error, naming the point, for a tensor that cannot be tapped.
  void tap(point where, const tensor_ref& what);
  // What the stream is given from here on comes behind the producers that read these bytes.
  void before_write(const tensor_ref& what);
  // The end, for those who want to hear what fails. A second call does nothing.
  void close();

 private:
  friend class monitor;
  tap_window(std::shared_ptr<foreign_taps> of, stream_ref stream);

  struct state;
  std::unique_ptr<state> state_;  // null: closed, or moved from
};

}  // namespace reprise
