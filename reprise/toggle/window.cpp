#include "reprise/toggle/window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/toggle/session_core.hpp"

namespace reprise {

namespace {

void count_anomaly(session_core& session, capture_stamp* stamp, const std::string& what) {
  ++session.counts.anomalies;
  if (stamp == nullptr) {
    if (session.loose_anomalies++ == 0) session.loose_anomaly = what;
  } else if (stamp->anomalies++ == 0) {
    stamp->first_anomaly = what;
  }
}

}  // namespace

capture_window::capture_window(std::shared_ptr<session_core> session, stream_ref captured)
    : session_{std::move(session)},
      captured_{captured},
      stamp_{session_->stamp_of(captured, true)},
      exceptions_before_{std::uncaught_exceptions()} {
  ++session_->open_windows;
  if (stamp_ == nullptr) {
    count_anomaly(*session_, nullptr, "a window was opened on a stream that is not being captured");
    return;
  }
  noted_before_ = stamp_->noted.size();
  anomalies_before_ = stamp_->anomalies;
}

capture_window::capture_window(capture_window&& other) noexcept = default;

capture_window::~capture_window() {
  if (session_ == nullptr) return;
  const std::lock_guard lock{session_->hub.guard};
  const bool thrown = std::uncaught_exceptions() > exceptions_before_;
  if (thrown && stamp_ != nullptr && !REPRISE_MUTANT(toggle_window_leaves_a_trace)) {
    stamp_->noted.resize(noted_before_);
    stamp_->anomalies = anomalies_before_;
  }
  --session_->open_windows;
  stamp_.reset();
  session_->pause_if_idle();
}

void capture_window::note(std::span<const switch_key> keys, node_id work) {
  const std::lock_guard lock{session_->hub.guard};
  const auto refuse = [&](const std::string& what) {
    count_anomaly(*session_, stamp_.get(), what);
  };
  if (stamp_ == nullptr) return;  // said when it was opened
  const std::uint64_t capture = session_->device.api().place_in_capture(captured_.id()).capture;
  if (capture != stamp_->capture) return refuse("a work was noted when its capture had ended");
  if (work == node_id::none) return refuse("a launch that became no node of the graph was noted");
  if (keys.empty()) return refuse("a work was noted without a key");
  std::vector<switch_key> sorted{keys.begin(), keys.end()};
  std::ranges::sort(sorted);
  std::erase(stamp_->counted, work);
  const auto same = std::ranges::find(stamp_->noted, work, &noted_work::node);
  if (same == stamp_->noted.end()) {
    stamp_->noted.push_back({work, std::move(sorted)});
  } else if (same->keys != sorted) {
    refuse(
        fmt::format("node {} was noted twice, under other keys", static_cast<std::uint64_t>(work)));
  }
}

planner_views capture_window::words_for_planner(std::size_t works) {
  const std::lock_guard lock{session_->hub.guard};
  if (session_->options.mode != toggle_mode::device) {
    throw usage_error{
        fmt::format("words_for_planner: the session is of mode {}, in which no kernel switches; "
                    "make one of mode device",
                    name_of(session_->options.mode))};
  }
  if (stamp_ == nullptr || stamp_->words != nullptr || works == 0) {
    throw usage_error{
        "words_for_planner: a capture has one planner, of one work or more; ask once, in a window "
        "of a stream that is being captured"};
  }
  if (session_->home == nullptr) {
    session_->home = std::make_unique<stream>(session_->device);
    session_->memory = std::make_unique<pool>(session_->device, "toggle");
  }
  stamp_->words = std::make_shared<planner_words>(*session_->memory, works, *session_->home);
  return {stamp_->words->handles(), stamp_->words->on()};
}

}  // namespace reprise
