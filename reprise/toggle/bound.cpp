#include "reprise/toggle/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <source_location>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/fault_points.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/telemetry/log.hpp"

namespace reprise {

namespace {

// Of sets that an executable was asked for, the last few that differ: enough to see one come again.
constexpr std::size_t remembered_sets = 32;

constexpr std::uint64_t never = ~std::uint64_t{0};  // no version

switch_set all_keys(const std::vector<noted_work>& works) {
  std::vector<switch_key> keys;
  for (const noted_work& one : works) keys.insert(keys.end(), one.keys.begin(), one.keys.end());
  return switch_set{std::move(keys)};
}

}  // namespace

kept_template::kept_template(graph_ref of, std::span<const node_id> without)
    : device_{of.device()},
      id_{device_.api().clone_without(of.id(), without, std::source_location::current())} {}

kept_template::~kept_template() {
  if (id_ != graph_id::none) device_.api().destroy(id_);
}

twin::twin(graph_ref of, stream_ref upload_on)
    : owned_executable{
          of.device(),
          of.device().api().instantiate(of.id(), upload_on.id(), std::source_location::current()),
          of.size()} {}

bound::bound(device_ref device, executable_id executable, std::weak_ptr<const void> alive, works of)
    : device_{device},
      executable_{executable},
      alive_{std::move(alive)},
      of_{std::move(of)},
      keys_{all_keys(of_.here)},
      nodes_(of_.here.size()),
      current_{executable} {}

bound::bound(device_ref device, executable_id executable, std::weak_ptr<const void> alive, works of,
             std::vector<device_node> handles)
    : bound{device, executable, std::move(alive), std::move(of)} {
  handles_ = std::move(handles);
}

bound::works bound::same_works() const {
  works same{of_.stamp, of_.here, of_.nodes, std::nullopt};
  if (of_.from) same.from.emplace(of_.from->ref(), std::span<const node_id>{});
  return same;
}

void bound::is_known(node_id node, bool on) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (of_.here[i].node == node) nodes_[i].on = on;
  }
}

bound::states bound::states_in(const switch_set* wanted) const {
  states on(nodes_.size(), true);
  if (wanted == nullptr) return on;
  for (std::size_t i = 0; i < on.size(); ++i) on[i] = of_.here[i].on_in(*wanted);
  return on;
}

std::size_t bound::differing(const states& wanted) const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].known || nodes_[i].on != wanted[i]) ++count;
  }
  return count;
}

bound::variant* bound::find(const states& wanted) {
  const auto found = std::ranges::find(variants_, wanted, &variant::on);
  return found == variants_.end() ? nullptr : &*found;
}

toggle_mode bound::choose(const states& wanted, toggle_counts& counts) {
  auto before = std::ranges::find(wanted_before_, wanted, &std::pair<states, std::uint64_t>::first);
  const toggle_facts facts{
      .nodes = of_.nodes,
      .switchable = nodes_.size(),
      .off = static_cast<std::size_t>(std::ranges::count(wanted, false)),
      .changed = differing(wanted),
      .touched = touched_,
      .launches_per_change =
          std::max(1.0, static_cast<double>(launches_) / static_cast<double>(changes_ + 1)),
      .wanted_before = before == wanted_before_.end() ? 0 : before->second,
      .has_variant = find(wanted) != nullptr,
      .may_have_twins = may_have_twins()};
  if (before == wanted_before_.end()) {
    if (wanted_before_.size() == remembered_sets) wanted_before_.erase(wanted_before_.begin());
    before = wanted_before_.emplace(wanted_before_.end(), wanted, 0);
  }
  ++before->second;
  toggle_choice choice = choose_way(facts);
  counts.why = std::move(choice.why);
  return choice.way;
}

void bound::bring_to(const switch_set* wanted, std::uint64_t version, std::optional<stream_ref> on,
                     const switching& with) {
  const states now = states_in(wanted);
  toggle_mode way = with.options.mode;
  if (is_driven()) way = toggle_mode::device;
  if (way == toggle_mode::automatic) way = choose(now, with.counts);
  if (!on) way = toggle_mode::host_eager;
  if (REPRISE_MUTANT(toggle_is_current_before_it_succeeds)) applied_ = version;
  switch (way) {
    case toggle_mode::device: by_words(now, *on, with.counts); break;
    case toggle_mode::variants: by_variant(now, *on, with); break;
    case toggle_mode::automatic:
    case toggle_mode::host_lazy:
    case toggle_mode::host_eager: by_host(now, with.counts); break;
  }
  ++changes_;
  with.counts.chosen = way;
  with.counts.nodes_off = static_cast<std::size_t>(std::ranges::count(now, false));
  with.counts.nodes_on = now.size() - with.counts.nodes_off;
  applied_ = version;
}

// A call that fails leaves its node unknown.
void bound::switch_node(std::size_t i, bool on, toggle_counts& counts) {
  node_state& node = nodes_[i];
  node.known = REPRISE_MUTANT(toggle_forgets_what_failed);
  if (node.known) node.on = on;
  ++counts.enable_calls;
  device_.api().enable(base(), of_.here[i].node, on, std::source_location::current());
  node.on = on;
  node.known = true;
  if (std::exchange(node.touched, true)) return;
  ++touched_;
  if (predicted_demotion_us(of_.nodes, 1) != 0) ++counts.demoted_nodes;
}

void bound::by_host(const states& wanted, toggle_counts& counts) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const bool differs = nodes_[i].on != wanted[i] || !nodes_[i].known;
    if (!differs && !REPRISE_MUTANT(toggle_switches_what_does_not_differ)) continue;
    landmark("toggle: the host switched a work");
    switch_node(i, wanted[i], counts);
  }
  current_ = base();
  current_serial_ = base_serial_;
  say_demotion();
}

void bound::say_demotion() {
  const double each = predicted_demotion_us(of_.nodes, touched_);
  if (each == 0 || std::exchange(said_, true)) return;
  log_line(fmt::format(
      "toggle: an executable of {} nodes has had {} of them switched, and its replays stay about "
      "{:.1f} us slower; {}",
      of_.nodes, touched_, each,
      may_have_twins() ? "it is instantiated anew when that has cost more than it takes"
                       : "instantiate it anew and bind that"));
}

// Those that are dropped may be in flight: the device lets them end.
void bound::make_room(std::size_t bytes, const switching& with) {
  toggle_counts& counts = with.counts;
  while (counts.variant_bytes + bytes > with.options.variant_bytes) {
    bound* of = nullptr;
    std::list<variant>::iterator least;
    for (bound& one : with.all) {
      for (auto at = one.variants_.begin(); at != one.variants_.end(); ++at) {
        if (at->made.id() == one.current_) continue;
        const bool is_less = of == nullptr || at->used < least->used;
        if (of != nullptr && is_less == REPRISE_MUTANT(toggle_drops_the_most_used_variant))
          continue;
        of = &one;
        least = at;
      }
    }
    if (of == nullptr) return;
    counts.variant_bytes -= least->bytes;
    ++counts.variants_dropped;
    of->variants_.erase(least);
  }
}

void bound::by_variant(const states& wanted, stream_ref on, const switching& with) {
  if (std::ranges::find(wanted, false) == wanted.end()) {
    by_host(wanted, with.counts);  // no call, unless the host has switched it before
    return;
  }
  variant* one = find(wanted);
  if (one != nullptr) landmark("toggle: a set came again");
  if (one == nullptr || REPRISE_MUTANT(toggle_makes_each_variant_again)) {
    std::vector<node_id> off;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!wanted[i]) off.push_back(of_.here[i].node);
    }
    const kept_template without{of_.from->ref(), off};
    twin made{without.ref(), on};
    const std::size_t bytes =
        made.nodes() * device_.api().bytes_per_node(std::source_location::current());
    variants_.push_back({wanted, std::move(made), ++serials_});
    one = &variants_.back();
    current_ = one->made.id();
    if (!REPRISE_MUTANT(toggle_has_no_variant_budget)) make_room(bytes, with);
    one->bytes = bytes;
    with.counts.variant_bytes += bytes;
    ++with.counts.variants_made;
  }
  one->used = ++with.uses;
  current_ = one->made.id();
  current_serial_ = one->serial;
}

void bound::by_words(const states& wanted, stream_ref on, toggle_counts& counts) {
  const planner_words& words = *of_.stamp->words;
  std::vector<std::uint8_t> said(words.works());
  // More words than works repeat the first of them.
  for (std::size_t i = 0; i < said.size(); ++i) said[i] = wanted[i < wanted.size() ? i : 0] ? 1 : 0;
  const bool is_there = said == words_ && known_words_;
  if (is_there && !REPRISE_MUTANT(toggle_copies_words_that_are_there)) return;
  wait_for_last(on, counts);
  const auto bring = [&](const auto& from, auto to) {
    copy_bytes(on, reinterpret_cast<const std::byte*>(from.data()),
               reinterpret_cast<std::byte*>(to.data()), to.bytes());
    ++counts.copies;
  };
  if (words_.empty()) {
    std::vector<device_node> handles{handles_};
    handles.resize(words.works(), handles_.front());
    bring(handles, words.handles());
  }
  known_words_ = false;
  bring(said, words.on());
  words_ = std::move(said);
  known_words_ = true;
}

void bound::send_words(stream_ref home, toggle_counts& counts) {
  if (!REPRISE_MUTANT(toggle_words_come_with_the_first_set)) {
    by_words(states(nodes_.size(), true), home, counts);
  }
  home.synchronize();
}

// The device keeps launches of one executable in order, whatever their streams; what another
// executable of the same memory does, and what is copied ahead of it, comes behind the launch
// before.
void bound::wait_for_last(stream_ref on, toggle_counts& counts) {
  if (!last_stream_ || *last_stream_ == on || REPRISE_MUTANT(toggle_twin_waits_for_nobody)) return;
  const auto here = std::source_location::current();
  if (!device_.state().order_after(last_stream_->id(), on, here)) {
    throw error{
        "toggle: the stream of the last launch is being captured, or destroyed by another thread; "
        "launch again when that is over"};
  }
  ++counts.waits;
}

void bound::follow(stream_ref on, toggle_counts& counts) {
  if (launched_serial_ != current_serial_) wait_for_last(on, counts);
  last_stream_ = on;
  launched_serial_ = current_serial_;
  ++launches_;
}

bool bound::repaired(stream_ref on, toggle_counts& counts) {
  if (touched_ == 0 || current_ != base()) return false;
  const double each = predicted_demotion_us(of_.nodes, touched_);
  lost_us_ += each;
  counts.demotion_us += each;
  const double anew = toggle_costs::instantiate_us * static_cast<double>(of_.nodes);
  if (lost_us_ < anew || !may_have_twins() || REPRISE_MUTANT(toggle_repairs_nothing)) return false;
  lost_us_ = 0;  // one that cannot be had now is tried again when it has cost as much again
  try {
    twin made{of_.from->ref(), on};
    if (!fresh_) left_ = nodes_;
    fresh_ = std::move(made);
    base_serial_ = ++serials_;
  } catch (const error& failure) {
    log_line(
        fmt::format("toggle: no fresh executable in the place of a slow one: {}", failure.what()));
    return false;
  }
  std::ranges::fill(nodes_, node_state{});
  touched_ = 0;
  ++counts.repairs;
  return true;
}

// By the end of the stream of its last launch: what else is queued there counts too.
bool bound::may_be_in_flight() const {
  if (!last_stream_ || !device_.state().is_live(last_stream_->id())) return false;
  event passed{device_};
  return !passed.record_outside(last_stream_->id()) || !passed.finished();
}

bool bound::restore(toggle_counts& counts, std::string& why) noexcept {
  const auto try_to = [&](auto&& call) {
    try {
      call();
      return true;
    } catch (const std::exception& failure) {
      why = failure.what();
      return false;
    }
  };
  applied_ = never;
  for (const variant& one : variants_) counts.variant_bytes -= one.bytes;
  variants_.clear();
  if (fresh_) nodes_ = std::move(left_);
  fresh_.reset();
  current_ = executable_;
  current_serial_ = base_serial_ = 0;
  if (!is_alive()) return true;
  bool done = true;
  if (is_driven()) {
    const bool all = std::ranges::find(words_, 0) == words_.end();
    if (all && known_words_) return true;
    if (!last_stream_ || !device_.state().is_live(last_stream_->id())) return false;
    return try_to([&] {
      by_words(states(nodes_.size(), true), *last_stream_, counts);
      last_stream_->synchronize();  // whoever launches it next may do so elsewhere
    });
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].known && nodes_[i].on) continue;
    if (!REPRISE_MUTANT(toggle_leaves_nodes_off)) {
      done = try_to([&] { switch_node(i, true, counts); }) && done;
    }
  }
  return done || is_gone();
}

// Destroyed with a launch in flight, it lasts until that is done, and nobody can launch it.
bool bound::is_gone() noexcept {
  try {
    if (last_stream_ && device_.state().is_live(last_stream_->id())) last_stream_->synchronize();
    device_.api().close_finished();
  } catch (const std::exception&) {
    return false;  // why nodes could not be switched is told
  }
  return !is_alive();
}

}  // namespace reprise
