// What a break leaves behind: work that it forked to other streams has to be joined, or waited for,
// before the next segment begins (docs/recording.md).
//
// Follows who is ordered behind whom by the works, event records and waits of this thread, and by
// its waits on the host. It sees nothing of streams that others than this library use.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string_view>

#include "reprise/device/enqueue.hpp"

namespace reprise {

class joined_work {
 public:
  // Looks on while it lives, at what comes behind `run` or is forked from it.
  explicit joined_work(stream_ref run);

  // Throws usage_error, naming the break, unless all work seen so far comes before what `run` is
  // given from now on; the host has waited for the stream that it names.
  void require(std::string_view step, std::string_view why) const;

 private:
  // How far each stream's work is known to come before something.
  using reach = std::map<stream_id, std::uint64_t>;

  void see(stream_ref stream, const work& what);
  static void join(reach& into, const reach& other);

  stream_ref run_;
  reach given_;                        // works seen, by stream
  std::map<stream_id, reach> behind_;  // what each stream comes behind
  std::map<event_id, reach> events_;   // what each event stands for
  reach waited_for_;                   // by the host: all that it gives out later comes behind
  submission_watch submissions_;
  host_wait_watch waits_;
};

// Runs the work of a break on the stream of its run, and requires that it joined what it forked.
void run_break(stream_ref run, std::string_view step, std::string_view why,
               const std::function<void(stream_ref)>& work);

}  // namespace reprise
