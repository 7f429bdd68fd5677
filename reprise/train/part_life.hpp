// The life of one part: which run it belongs to, whether it records, and what it has said. The
// parts own one each; what they have recorded is theirs to drop.
//
// Events of a run reach a part only while it is that run's. One warning says why the gates refuse,
// told once for each reason; one says what drifted, once a run. One thread at a time.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "reprise/train/part.hpp"

namespace reprise {

class part_life {
 public:
  // `kind` and `name` are what lines begin with: "graphed network 'trunk'".
  part_life(std::string_view kind, std::string_view name, const part_options& options);

  const part_options& options() const { return options_; }
  part_state state() const { return state_; }
  bool is_on() const { return options_.on; }
  bool records() const { return state_ == part_state::ready; }
  const std::string& reason() const { return reason_; }
  // "graphed network 'trunk'".
  const std::string& title() const { return title_; }

  // The run whose events it hears; 0: none yet.
  std::uint64_t run() const { return run_; }
  void take(std::uint64_t run) { run_ = run; }

  // Behind a clear, where a run starts: `why_not` of the gates, empty where they let it pass. `now`
  // is counted from here for what close() says.
  void open(const std::string& why_not, const part_counts& now);
  // Fields only.
  void clear();
  // True where this drift ends the recordings of the run: then their owner drops them.
  bool retire(const std::string& drifted);
  // Where a run ends: says so, with a reason, where the part was on and replayed nothing in it.
  void close(const part_counts& now);

  std::uint64_t retirements() const { return retirements_; }

 private:
  part_options options_;
  std::string title_;
  std::uint64_t run_ = 0;
  part_state state_;
  std::string reason_;
  std::uint64_t retirements_ = 0;
  bool is_open_ = false;        // a run has started, and not closed
  part_counts at_start_;        // of that run
  std::set<std::string> told_;  // reasons of gates
};

}  // namespace reprise
