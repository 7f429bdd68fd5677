// The gate of a device that has sessions: one for all of them, there while one of them is.
//
// It asks the gate that was there before first; then it knows the executable, or finds out once
// what is in it, and lets its session bring it up to date or refuse it. An executable with works of
// no session costs one look-up. One lock for all sessions of a device, since a launch on one thread
// must not meet a session that another one ends; nobody waits in it for the device's work.
//
// For this room's .cpp files.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "reprise/base/mutex.hpp"
#include "reprise/device/device.hpp"
#include "reprise/device/gate.hpp"
#include "reprise/toggle/capture_stamp.hpp"

namespace reprise {

class bound;
struct session_core;

class gate_hub final : public launch_gate {
 public:
  // Lasts as long as the process, since a launch may be in it when the last session ends.
  static gate_hub& of(device_ref device);

  verdict before(executable_id& may_swap, stream_ref stream) override;

  // All below: under `guard`.
  mutex guard;

  void hook(session_core& session, device_ref device);
  void unhook(session_core& session, device_ref device);

  void add(const std::shared_ptr<capture_stamp>& stamp) { stamps_.push_back(stamp); }
  std::vector<std::shared_ptr<capture_stamp>> stamps();

  // Ends with the executable, and costs it a few bytes until then.
  std::weak_ptr<const void> life_of(device_ref device, executable_id executable);
  void binds(executable_id executable, session_core& session, bound& as);
  // Null: no session has it.
  const session_core* owner_of(executable_id executable);
  bound* bound_as(executable_id executable);
  void forget(const bound& gone);
  // Its launches are refused until it is bound again, though others of its graph are bound.
  void release(const bound& gone);
  void condemn(const bound& unknown);

 private:
  struct known {
    std::weak_ptr<const void> alive;
    std::weak_ptr<capture_stamp> has;  // whose works are in it; none: nobody's
    session_core* session = nullptr;   // that has bound it
    bound* as = nullptr;
    node_id probed = node_id::none;  // a node that it was found out by, and how that was left
    bool probed_on = true;
    bool is_classified = false;
    bool is_released = false;
    bool is_condemned = false;  // what is on in it is not known
  };

  known& at(device_ref device, executable_id executable);
  void classify(known& one, device_ref device, executable_id executable);
  bool has_node(known& one, device_ref device, executable_id executable, const capture_stamp& of);
  void look_at(executable_id& may_swap, stream_ref stream);
  void rebind(known& one, session_core& session, executable_id executable,
              const std::shared_ptr<capture_stamp>& stamp);
  [[noreturn]] void refuse(session_core& session, const capture_stamp& stamp);
  bool has_condemned() const;
  void drop_the_gone();
  void put_on(device_ref device);
  void take_off(device_ref device);
  verdict ask(launch_gate* other, executable_id& may_swap, stream_ref stream) const;

  std::vector<session_core*> sessions_;
  std::vector<std::weak_ptr<capture_stamp>> stamps_;
  std::unordered_map<executable_id, known> table_;
  launch_gate* before_ = nullptr;   // that was there
  launch_gate* beneath_ = nullptr;  // earlier still, where that one was put over this
};

}  // namespace reprise
