#include "reprise/tap/point_switches.hpp"

#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise {

point_switches::point_switches(device_ref device, toggle_mode mode)
    : mode_{mode},
      // Recordings of one monitor are of different steps, which mark what they mark.
      session_{device, toggle_options{.mode = mode, .keys_may_differ = true}} {}

bool point_switches::note(stream_ref captured, std::span<const std::uint64_t> points,
                          std::span<const node_id> producers, std::span<const node_id> shared) {
  if (are_driven() || session_.is_anothers(captured)) return false;
  capture_window window = session_.open_window(captured);
  std::vector<switch_key> all;
  for (std::size_t i = 0; i < points.size(); ++i) {
    all.push_back(switch_key{points[i]});
    window.note(all.back(), producers[i]);
  }
  for (const node_id one : shared) window.note(std::span{all}, one);
  return true;
}

void point_switches::bind(graph_ref graph, executable_ref executable) {
  session_.bind(graph, executable);
  version_ = 0;
}

// Where it is the executable that was bound, it is switched back. Where that fails it is another
// under the same handle, with other nodes.
void point_switches::bind_anew(graph_ref graph, executable_ref executable, twins others) {
  try {
    session_.unbind(executable);
  } catch (const error&) {
  }
  session_.rebind(graph, executable, others);
  version_ = 0;
}

running point_switches::want(std::uint64_t version, bool dropped,
                             const std::function<bool(std::uint64_t point)>& is_on) {
  if (version != version_) {
    std::vector<switch_key> on;
    const switch_set bound = session_.keys();
    for (const switch_key key : bound) {
      if (is_on(static_cast<std::uint64_t>(key))) on.push_back(key);
    }
    all_on_ = all_on_ && on.size() == bound.size();
    wanted_ = switch_set{std::move(on)};
    version_ = version;
  }
  const bool by_twins = mode_ == toggle_mode::automatic || mode_ == toggle_mode::variants;
  const bool nothing = dropped && by_twins && !REPRISE_MUTANT(dropped_steps_run_their_producers);
  all_on_ = all_on_ && !nothing;
  // A monitor that never switched leaves launches alone: everything is on in what is recorded.
  if (all_on_) return running::all;
  session_.set(nothing ? switch_set{} : wanted_);
  return nothing ? running::nothing : running::as_wanted;
}

}  // namespace reprise
