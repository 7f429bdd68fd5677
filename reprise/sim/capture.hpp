// One open capture of a simulated device: its nodes and their edges, the streams that are in it,
// and who has been joined. Guarded by the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "reprise/base/ids.hpp"
#include "reprise/device/api.hpp"
#include "reprise/sim/graph.hpp"

namespace reprise::sim {

class capture {
 public:
  // `with_places`: the graph has a node for every step, so that notes can be put down.
  capture(stream_id origin, bool with_places);

  stream_id origin() const { return branches_.front().stream; }
  std::uint64_t number() const { return number_; }
  std::thread::id begun_by() const { return begun_by_; }
  std::vector<stream_id> streams() const;

  // `number`: of the stream, for people.
  node_id add(stream_id stream, std::uint64_t number, const work& what);
  // What `stream` has done so far becomes what the event stands for.
  void record(event_id event, stream_id stream);
  // `stream` joins the capture, ordered after the event, which was recorded in it.
  void wait(event_id event, stream_id stream);

  // Behind the last step of the stream, whatever comes next.
  void note(stream_id stream, const block_note& what);

  capture_place place_of(stream_id stream) const;
  bool precedes(const capture_place& earlier, stream_id stream) const;

  void keep(std::shared_ptr<const void> owner) { made_.keep(std::move(owner)); }

  // The first thing that made the capture invalid; later ones change nothing.
  void invalidate(std::string cause);
  bool valid() const { return cause_.empty(); }
  const std::string& cause() const { return cause_; }

  // A stream whose last work the origin does not wait for; none when all were joined.
  stream_id unjoined() const;

  graph_body take_graph() { return std::move(made_); }

 private:
  // How many steps of each branch come before a point: a vector clock, by branch. Works are steps,
  // and so are waits, behind which other branches' works come before too.
  using clock = std::vector<std::size_t>;
  // A point of the capture: what comes before it, and the last nodes of that.
  struct point {
    clock before;
    std::vector<std::size_t> tail;
  };
  struct branch {
    stream_id stream;
    clock before;
    std::vector<std::size_t> tail;
    std::size_t last_work = 0;  // the step of it
  };

  std::size_t index_of(stream_id stream) const;
  std::size_t add_place(std::vector<std::size_t> after);

  std::uint64_t number_;
  std::thread::id begun_by_ = std::this_thread::get_id();
  bool with_places_;
  std::vector<branch> branches_;  // the origin first
  std::map<event_id, point> marks_;
  graph_body made_;
  std::string cause_;
};

}  // namespace reprise::sim
