// A thing of somebody else's that recorded work uses and that must go after it: a communicator, a
// library's handle.
//
//   external_resource comm{dev, "communicator", [&] { ncclCommDestroy(native); }};
//   … in a capture: comm.used_by(c, "decode step", [&] { recording.reset(); });
//   comm.release(std::chrono::seconds{5});
//
// Releasing asks every user to let go, waits until the launches of all of them are over, and only
// then releases. It never hangs: what does not let go in time is named. Thread safe.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <source_location>
#include <string>

#include "reprise/device/device.hpp"

namespace reprise {

class external_resource {
 public:
  // `release` is called once, and does not throw.
  external_resource(device_ref device, std::string name, std::function<void()> release);
  // Releases within two seconds; what stands in the way is reported, and the thing is then kept.
  ~external_resource();
  external_resource(const external_resource&) = delete;
  external_resource& operator=(const external_resource&) = delete;

  // The graph of the capture that the stream is in uses it, and so do its executables, until their
  // last launch is over. `let_go` destroys them when it is called, once, from release().
  void used_by(stream_ref captured, std::string user, std::function<void()> let_go,
               std::source_location place = std::source_location::current());

  // Those whose graphs or launches are left.
  std::size_t users() const;

  // Throws usage_error when users are left at the limit, naming the resource and them; it can then
  // be called again. Does nothing once it has been released.
  void release(std::chrono::milliseconds limit,
               std::source_location place = std::source_location::current());

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace reprise
