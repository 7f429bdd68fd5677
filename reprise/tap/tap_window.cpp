#include "reprise/tap/tap_window.hpp"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/replay/output_table.hpp"
#include "reprise/tap/foreign_taps.hpp"
#include "reprise/tap/producer_branch.hpp"

namespace reprise {

struct tap_window::state {
  std::shared_ptr<foreign_taps> of;
  stream_ref stream;
  int exceptions;                         // under way when it was opened
  std::shared_ptr<foreign_graph> made;    // null: the stream is not being captured
  std::optional<producer_branch> branch;  // of a capture
  eager_step now;

  bool is_broken = false;  // a producer is there in part

  bool is_left_by_exception() const { return is_broken || std::uncaught_exceptions() > exceptions; }
};

namespace {

std::uint64_t capture_of(stream_ref stream) {
  return stream.device().api().place_in_capture(stream.id()).capture;
}

void require_window(const foreign_taps& of, stream_ref stream) {
  const tap_core& core = *of.core;
  if (!(core.device == stream.device())) {
    throw usage_error{
        "open_window: the stream is of another device than the monitor; make a "
        "monitor for each device"};
  }
  if (!stream.capturing()) return;
  if (core.switches.are_driven()) {
    throw usage_error{
        "open_window: in mode device the works of a graph are driven, and the owner of this one "
        "instantiates it without that; give monitor_options::switch_by another mode"};
  }
  if (of.is_open) {
    throw usage_error{
        "open_window: a window of this monitor is open, and its producers have one branch; close "
        "it first, or make a monitor for each capture"};
  }
  if (of.has(capture_of(stream))) {
    throw usage_error{
        "open_window: this capture has had a window of this monitor, and one plan is made for a "
        "graph; keep one window open over all its taps"};
  }
}

}  // namespace

tap_window::tap_window(std::shared_ptr<foreign_taps> of, stream_ref stream) {
  require_window(*of, stream);
  state_ = std::make_unique<state>(std::move(of), stream, std::uncaught_exceptions());
  tap_core& core = *state_->of->core;
  if (!stream.capturing()) {
    state_->now = state_->of->eager.begin(next_replay());
    return;
  }
  state_->made = std::make_shared<foreign_graph>();
  state_->made->capture = capture_of(stream);
  state_->made->works = std::make_shared<producers>(state_->of->core, launched_by::owner);
  state_->branch.emplace(core, stream);
  state_->of->is_open = true;
}

tap_window::tap_window(tap_window&& other) noexcept = default;

tap_window::~tap_window() {
  try {
    close();
  } catch (const std::exception& failed) {
    report_error(std::string{"tap_window: "} + failed.what());
  }
}

void tap_window::tap(point where, const tensor_ref& what) {
  if (state_ == nullptr) throw usage_error{"tap: the window is closed; open another one"};
  state& now = *state_;
  tap_core& core = *now.of->core;
  std::optional<tapped_point> one = core.tapped(where, what);
  if (!one) return;
  one->enabled = core.is_enabled(*one, now.now.gate);
  if (now.made) {
    try {
      now.made->works->add(now.stream, *now.branch, *one, what);
    } catch (const usage_error&) {
      throw;  // one point too many: those before it are whole
    } catch (...) {
      now.is_broken = true;
      throw;
    }
  } else if (one->enabled) {
    now.of->eager.publish(site{now.stream}, now.now, *one, what);
  }
}

void tap_window::before_write(const tensor_ref& what) {
  if (state_ == nullptr || !state_->made || REPRISE_MUTANT(window_orders_no_writes)) return;
  state_->branch->wait_for_readers(state_->stream, what.data, what.bytes());
}

void tap_window::close() {
  if (state_ == nullptr) return;
  const std::unique_ptr<state> done = std::move(state_);
  if (!done->made) return;
  done->of->is_open = false;
  producers& works = *done->made->works;
  if (done->is_left_by_exception() && !REPRISE_MUTANT(window_left_by_exception_is_noted)) {
    done->branch->join();
    return;
  }
  try {
    works.end(done->stream, *done->branch);
  } catch (...) {
    done->branch->join();
    throw;
  }
  done->branch->join();
  if (works.empty()) return;
  const auto life = std::make_shared<const char>();
  done->stream.device().api().keep(done->stream.id(), life);
  done->made->alive = life;
  done->of->add(done->made);
}

}  // namespace reprise
