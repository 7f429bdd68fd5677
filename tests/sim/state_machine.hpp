// A model of captures, graphs and executables on one stream, against which a device is compared
// call by call: what a call does, whether it is refused and as what, and what memory holds in the
// end.
//
// Every call may come at any time. Cells are numbers in device memory; graphs are rows of fills of
// cells, one behind the other or side by side.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <set>
#include <vector>

#include "tests/sim/simulated.hpp"

namespace reprise::test {

enum class action : std::uint8_t {
  begin,
  end,
  abandon,
  fill,
  fork,
  instantiate,
  launch,
  update,
  toggle,
  change,
  clone,
  destroy_graph,
  destroy_executable,
  move,
  synchronize
};

// `a` and `b` choose among what there is: slots, cells, nodes; `value` is written.
struct call {
  action what = action::begin;
  std::uint8_t a = 0;
  std::uint8_t b = 0;
  std::uint8_t value = 0;
};
std::ostream& operator<<(std::ostream& to, const call& one);

// How a call ended.
enum class ending : std::uint8_t {
  done,
  not_alike,
  capture_refused,
  device_refused,
  usage_refused
};
std::ostream& operator<<(std::ostream& to, ending how);

class state_machine {
 public:
  explicit state_machine(device_ref dev);
  ~state_machine();
  state_machine(const state_machine&) = delete;
  state_machine& operator=(const state_machine&) = delete;

  bool capturing() const { return open_.has_value(); }
  // What the device did, and what the model says of it.
  ending make(const call& one);
  ending expect(const call& one);

  // Behind all that was enqueued; ends a capture that is open.
  std::vector<std::uint32_t> cells_of_the_device();
  std::vector<std::uint32_t> cells_of_the_model() const { return {cells_.begin(), cells_.end()}; }

 private:
  static constexpr std::size_t slots = 2;
  static constexpr std::size_t half = 3;
  static constexpr std::size_t cell_count = 2 * half;

  // One node: of which cell, behind which others; its id is the device's.
  struct node {
    node_id id;
    std::size_t cell = 0;
    std::uint32_t value = 0;
    std::set<std::size_t> after;
  };
  using graph_model = std::vector<node>;
  struct executable_model {
    graph_model made_of;  // whose topology and ids it has
    graph_model runs;     // whose parameters
    std::map<std::size_t, std::pair<std::size_t, std::uint32_t>> changed;  // cell and value
    std::set<std::size_t> off;
  };
  struct graph_slot {
    graph_id id = graph_id::none;
    std::optional<graph_model> model;
  };
  struct executable_slot {
    executable_id id = executable_id::none;
    std::optional<executable_model> model;
  };
  struct capture_model {
    graph_model nodes;
    std::set<std::size_t> tail;
    bool spoiled = false;
  };

  ending perform(const call& one);
  ending foresee(const call& one);
  ending spoil();
  work fill_of(std::size_t cell, std::uint32_t value);
  node_id add_fill(stream_ref on, std::size_t cell, std::uint32_t value);
  void fork_fill(const call& one);
  static std::size_t cell_to_change(const executable_slot& e, const call& one);

  device_ref dev_;
  device_api& api_;
  stream stream_;
  stream side_;
  pool memory_;
  buffer<std::uint32_t> device_cells_;
  access touched_;

  std::array<std::uint32_t, cell_count> cells_{};
  std::optional<capture_model> open_;
  std::array<graph_slot, slots> graphs_;
  std::array<executable_slot, slots> executables_;
  std::vector<node_id> fresh_;  // ids that the device gave to nodes of the open capture
};

}  // namespace reprise::test
