// One open capture of a simulated device: its nodes, the streams that are in it, and who has been
// joined. Guarded by the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/sim/stored_work.hpp"

namespace reprise::sim {

// Nodes in the order they were captured, which is one of the orders that their edges allow.
using node_list = std::vector<std::shared_ptr<const stored_work>>;

class capture {
 public:
  capture(stream_id origin, std::uint64_t number);

  stream_id origin() const { return origin_; }
  std::uint64_t number() const { return number_; }  // never used twice on a device
  const std::set<stream_id>& streams() const { return streams_; }

  void add(stream_id stream, const work& what);
  // What `stream` has done so far becomes what the event stands for.
  void record(event_id event, stream_id stream);
  // `stream` joins the capture, ordered after the event, which was recorded in it.
  void wait(event_id event, stream_id stream);

  // The first thing that made the capture invalid; later ones change nothing.
  void invalidate(std::string cause);
  bool valid() const { return cause_.empty(); }
  const std::string& cause() const { return cause_; }

  // A stream whose last work the origin does not wait for; none when all were joined.
  stream_id unjoined() const;

  node_list take_nodes() { return std::move(nodes_); }

 private:
  // How many works of each stream come before a point.
  using clock = std::map<stream_id, std::size_t>;
  static void merge(clock& into, const clock& from);

  stream_id origin_;
  std::uint64_t number_;
  std::set<stream_id> streams_;
  node_list nodes_;
  std::map<stream_id, clock> tails_;
  std::map<event_id, clock> marks_;
  std::string cause_;
};

}  // namespace reprise::sim
