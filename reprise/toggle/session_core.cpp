#include "reprise/toggle/session_core.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "reprise/base/clock.hpp"
#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/telemetry/log.hpp"
#include "reprise/toggle/refusal.hpp"

namespace reprise {

std::string_view name_of(toggle_mode mode) {
  switch (mode) {
    case toggle_mode::automatic: return "automatic";
    case toggle_mode::variants: return "variants";
    case toggle_mode::host_lazy: return "host_lazy";
    case toggle_mode::host_eager: return "host_eager";
    case toggle_mode::device: return "device";
  }
  return "?";
}

namespace {

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

toggle_owner next_toggle_owner() {
  return toggle_owner{next_number()};
}

session_core::session_core(device_ref of, toggle_options given)
    : device{of}, options{std::move(given)}, hub{gate_hub::of(of)} {
  if (options.owner == toggle_owner::none) options.owner = next_toggle_owner();
}

void session_core::begin() {
  if (number == 0) number = next_number();
  if (is_hooked) return;
  hub.hook(*this, device);
  is_hooked = true;
}

void session_core::pause_if_idle() {
  if (!bindings.empty() || open_windows != 0 || !is_hooked) return;
  hub.unhook(*this, device);
  is_hooked = false;
}

std::shared_ptr<capture_stamp> session_core::stamp_of(stream_ref captured, bool make) {
  const std::uint64_t capture = device.api().place_in_capture(captured.id()).capture;
  if (capture == 0) return nullptr;
  for (auto& one : hub.stamps()) {
    const bool is_ours = one->owner == options.owner && one->session == number;
    if (one->capture == capture && is_ours) return one;
  }
  if (!make) return nullptr;
  auto made = std::make_shared<capture_stamp>();
  made->owner = options.owner;
  made->session = number;
  made->capture = capture;
  made->label = fmt::format("capture {}", capture);
  device.api().keep(captured.id(), made);
  hub.add(made);
  return made;
}

void session_core::require_running(const char* call) const {
  if (ended_by.empty()) return;
  throw usage_error{fmt::format("{}: the session is over, since {}; clear() it and record again",
                                call, ended_by)};
}

std::shared_ptr<capture_stamp> session_core::unbound() const {
  for (const auto& stamp : hub.stamps()) {
    const bool is_ours = stamp->owner == options.owner && stamp->session == number;
    if (is_ours && stamp->holds_works() && !stamp->bound) return stamp;
  }
  return nullptr;
}

// Each of these would leave records that do not match what is switched.
void session_core::require_activation() const {
  if (bindings.empty()) {
    throw usage_error{"set: nothing is bound; call bind(graph, executable) after the warm-up"};
  }
  std::uint64_t anomalies = loose_anomalies;
  std::string first = loose_anomaly;
  const bound* unlike = nullptr;
  for (const bound& one : bindings) {
    if (!(one.keys() == bindings.front().keys())) unlike = &one;
  }
  for (const auto& stamp : hub.stamps()) {
    if (stamp->owner != options.owner || stamp->session != number || !stamp->holds_works())
      continue;
    anomalies += stamp->anomalies;
    if (first.empty()) first = stamp->first_anomaly;
  }
  const auto left = unbound();
  if (left != nullptr && !REPRISE_MUTANT(toggle_activates_with_unbound_graphs)) {
    throw usage_error{
        fmt::format("set: '{}' was recorded with {} switchable works and is not bound; bind it, or "
                    "destroy its graph",
                    left->label, left->noted.size() + left->counted.size())};
  }
  if (anomalies != 0) {
    throw usage_error{fmt::format("set: {} anomalies while recording, the first: {}; record again",
                                  anomalies, first)};
  }
  if (unlike != nullptr && !options.keys_may_differ) {
    throw usage_error{
        fmt::format("set: '{}' has {} keys and '{}' has others, {}; record both under the same "
                    "points, or set toggle_options::keys_may_differ",
                    bindings.front().stamp()->label, bindings.front().keys().size(),
                    unlike->stamp()->label, unlike->keys().size())};
  }
}

void session_core::drop_the_dead() {
  for (auto at = bindings.begin(); at != bindings.end();) {
    if (at->is_alive()) {
      ++at;
      continue;
    }
    std::string why;
    at->restore(counts, why);  // its twins
    hub.forget(*at);
    at = bindings.erase(at);
  }
  counts.bound = bindings.size();
}

switch_set session_core::keys_of_all() const {
  std::vector<switch_key> all;
  for (const bound& one : bindings) all.insert(all.end(), one.keys().begin(), one.keys().end());
  return switch_set{std::move(all)};
}

void session_core::fail(bound& one, const char* call, const std::exception& failure) {
  if (!std::exchange(one.failed, true) && !REPRISE_MUTANT(toggle_never_tries_again)) {
    throw switch_refusal{
        refused::not_applied,
        fmt::format("{0}: switching failed and nothing was launched: {1}; what is on is known, so "
                    "{0} again for one more try, or run this step eagerly",
                    call, failure.what())};
  }
  const std::string why = fmt::format("switching failed twice: {}", failure.what());
  end(why);
  throw switch_refusal{
      refused::session_ended,
      fmt::format("{}: {}; the session is over and all is as it was found: run the step eagerly "
                  "and unwatched, then clear() and record again",
                  call, why)};
}

void session_core::apply_now() {
  const double began = now_us();
  for (bound& one : bindings) {
    try {
      one.bring_to(wanted_or_all(), version, std::nullopt,
                   {options, bindings, variant_uses, counts});
      one.failed = false;
    } catch (const std::exception& failure) {
      fail(one, "set", failure);
    }
  }
  counts.us += now_us() - began;
}

executable_id session_core::prepare(bound& one, stream_ref on) {
  ++counts.launches;
  const auto bring = [&] {
    const double began = now_us();
    one.bring_to(wanted_or_all(), version, on, {options, bindings, variant_uses, counts});
    counts.us += now_us() - began;
  };
  try {
    if (!one.is_current(version)) bring();
    if (one.repaired(on, counts)) bring();
    one.follow(on, counts);
    one.failed = false;
    return one.current();
  } catch (const usage_error& failure) {
    ++counts.refused;
    if (one.noticed) refuse_part(one);
    fail(one, "launch", failure);
  } catch (const std::exception& failure) {
    ++counts.refused;
    fail(one, "launch", failure);
  }
}

// The gate took it for another executable of a bound graph.
void session_core::refuse_part(bound& one) {
  const std::string label = one.stamp()->label;
  std::string why;
  one.restore(counts, why);
  hub.release(one);
  bindings.remove_if([&](const bound& other) { return &other == &one; });
  counts.bound = bindings.size();
  throw switch_refusal{
      refused::unbound,
      fmt::format("launch: the executable has some works of '{}' and not all, so it is of another "
                  "graph than the bound one; call bind(graph, executable)",
                  label)};
}

bound& session_core::add(bound made) {
  bindings.push_back(std::move(made));
  bound& one = bindings.back();
  one.stamp()->bound = true;
  hub.binds(one.executable(), *this, one);
  counts.bound = bindings.size();
  return one;
}

void session_core::end(const std::string& why) {
  restore();
  ended_by = why;
  log_line(fmt::format("toggle: the session is over, since {}", why));
}

void session_core::restore() noexcept {
  for (bound& one : bindings) {
    std::string why;
    if (!one.restore(counts, why)) {
      hub.condemn(one);
      report_error(
          fmt::format("toggle: an executable of '{}' could not be switched back and is "
                      "launched no more: {}",
                      one.stamp()->label, why));
    }
    hub.forget(one);
  }
  bindings.clear();
  counts.bound = 0;
  counts.nodes_on = counts.nodes_off = 0;
  wanted = {};
  version = 0;
  is_active = false;
  if (is_hooked && open_windows == 0) {
    hub.unhook(*this, device);
    is_hooked = false;
  }
}

}  // namespace reprise
