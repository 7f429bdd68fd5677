// One bound executable: what is on in it, as far as that is known, and the executables that may run
// in its place.
//
// Everything here belongs to the executable's identity: another executable starts anew. What was
// switched is known call by call, so a change that fails half-way leaves the truth behind, and the
// next try makes the calls that are still needed.
//
// For this room's .cpp files; under the lock of the device's gate_hub.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise/device/graph.hpp"
#include "reprise/toggle/automatic.hpp"
#include "reprise/toggle/capture_stamp.hpp"
#include "reprise/toggle/planner_words.hpp"
#include "reprise/toggle/toggle_counts.hpp"

namespace reprise {

// A template that the session keeps: a clone, so that its owner may drop his.
class kept_template {
 public:
  kept_template(graph_ref of, std::span<const node_id> without);
  kept_template(kept_template&& other) noexcept
      : device_{other.device_}, id_{std::exchange(other.id_, graph_id::none)} {}
  kept_template& operator=(kept_template&&) = delete;
  ~kept_template();

  graph_ref ref() const { return {device_, id_}; }

 private:
  device_ref device_;
  graph_id id_;
};

// An executable of the session's own that runs in the place of a bound one.
class twin : public owned_executable {
 public:
  twin(graph_ref of, stream_ref upload_on);
};

class bound;

// What the bindings of a session share.
struct switching {
  const toggle_options& options;
  std::list<bound>& all;
  std::uint64_t& uses;  // of variants, counted
  toggle_counts& counts;
};

class bound {
 public:
  struct works {
    std::shared_ptr<capture_stamp> stamp;
    std::vector<noted_work> here;       // those of its works that are in this graph
    std::size_t nodes = 0;              // of the whole graph
    std::optional<kept_template> from;  // where twins are allowed and may be wanted
  };

  // `alive` ends with the executable.
  bound(device_ref device, executable_id executable, std::weak_ptr<const void> alive, works of);
  // Of a device-driven executable.
  bound(device_ref device, executable_id executable, std::weak_ptr<const void> alive, works of,
        std::vector<device_node> handles);

  executable_id executable() const { return executable_; }
  bool is_alive() const { return !alive_.expired(); }
  const std::shared_ptr<capture_stamp>& stamp() const { return of_.stamp; }
  const std::vector<noted_work>& noted() const { return of_.here; }
  bool is_driven() const { return !handles_.empty(); }
  bool may_have_twins() const { return of_.from.has_value(); }
  const switch_set& keys() const { return keys_; }

  // For a new binding of another executable of the same graph.
  works same_works() const;
  // Found out by a call that did it.
  void is_known(node_id node, bool on);

  // What the next launch runs.
  executable_id current() const { return current_; }
  bool is_current(std::uint64_t version) const { return applied_ == version; }
  // `wanted` null: all on. `on`: of the launch that it is for; none where nothing is launched now,
  // and then the host switches. It is current when this returns; throws what the device throws.
  void bring_to(const switch_set* wanted, std::uint64_t version, std::optional<stream_ref> on,
                const switching& with);
  // Counts what a launch loses since nodes were switched. True where that was more by now than a
  // fresh executable costs: it is there, and has to be brought up to date.
  bool repaired(stream_ref on, toggle_counts& counts);
  // Ahead of a launch that is prepared: behind the one before, where the device does not see to it.
  void follow(stream_ref on, toggle_counts& counts);

  // All on, for a device-driven executable that was never launched; waits for it.
  void send_words(stream_ref home, toggle_counts& counts);

  // Whether the host would have to switch any of its works.
  bool differs_from(const switch_set& wanted) const { return differing(states_in(&wanted)) != 0; }
  // Whether work may be under way on the stream of its last launch.
  bool may_be_in_flight() const;

  // All on, as it was found, and no twins. False where what is on is not known then; says why.
  bool restore(toggle_counts& counts, std::string& why) noexcept;

  bool failed = false;   // the last change did, for the first time
  bool noticed = false;  // by the gate, by one work: it may turn out that others are not in it

 private:
  struct node_state {
    bool on = true;
    bool known = true;  // false: a call that would have changed it failed
    bool touched = false;
  };
  struct variant {
    std::vector<bool> on;
    twin made;
    std::uint64_t serial;
    std::size_t bytes = 0;
    std::uint64_t used = 0;
  };
  using states = std::vector<bool>;

  states states_in(const switch_set* wanted) const;
  executable_id base() const { return fresh_ ? fresh_->id() : executable_; }
  std::size_t differing(const states& wanted) const;
  toggle_mode choose(const states& wanted, toggle_counts& counts);
  variant* find(const states& wanted);
  void switch_node(std::size_t i, bool on, toggle_counts& counts);
  void by_host(const states& wanted, toggle_counts& counts);
  void say_demotion();
  void by_variant(const states& wanted, stream_ref on, const switching& with);
  void by_words(const states& wanted, stream_ref on, toggle_counts& counts);
  static void make_room(std::size_t bytes, const switching& with);
  void wait_for_last(stream_ref on, toggle_counts& counts);
  bool is_gone() noexcept;

  device_ref device_;
  executable_id executable_;
  std::weak_ptr<const void> alive_;
  works of_;
  switch_set keys_;
  std::vector<node_state> nodes_;
  std::uint64_t applied_ = 0;
  executable_id current_;

  std::optional<twin> fresh_;  // in the place of the bound one, since that one's replays are slow
  std::vector<node_state> left_;  // of the bound one then
  std::list<variant> variants_;
  std::vector<std::pair<states, std::uint64_t>> wanted_before_;
  std::uint64_t changes_ = 0, launches_ = 0;

  std::size_t touched_ = 0;
  double lost_us_ = 0;
  bool said_ = false;

  std::vector<device_node> handles_;
  std::vector<std::uint8_t> words_;  // as the device has them; empty: not yet
  bool known_words_ = true;          // false: a copy of others failed

  // Which executable is which: devices use ids again. The bound one has 0.
  std::uint64_t serials_ = 0;
  std::uint64_t base_serial_ = 0, current_serial_ = 0, launched_serial_ = 0;
  std::optional<stream_ref> last_stream_;
};

}  // namespace reprise
