#include "reprise/train/graphed_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"
#include "reprise/train/gates.hpp"
#include "reprise/train/part_events.hpp"

namespace reprise {

graphed_network::graphed_network(nn::sequence module, byte_budget& budget,
                                 const part_options& options)
    : life_{"graphed network", module.describe().name(), options},
      module_{std::move(module), budget, options} {}

// Whether this call is one of the recording; drift ends that.
bool graphed_network::records_here(site at) {
  if (!life_.records()) return false;
  const std::string drifted = module_.drifted(at.stream.device());
  if (drifted.empty()) return true;
  // Nobody waits here: what was recorded goes when its last replay has passed.
  if (life_.retire(drifted) && !REPRISE_MUTANT(retirement_drops_nothing)) {
    if (const std::shared_ptr<graphed> gone = module_.let_go()) {
      ++clears_;
      module_.dropped(*gone);
    }
  }
  return false;
}

part_call graphed_network::forward(site at, const operand& x) {
  if (lacks_precision_) ++low_precision_;
  return module_.forward(at, x, records_here(at));
}

tensor<float> graphed_network::backward(site at, const part_call& call, const tensor<float>& dy,
                                        bool wants_x) {
  static_cast<void>(records_here(at));
  return module_.backward(at, call, dy, wants_x);
}

tensor<float> graphed_network::infer(site at, const operand& x) {
  return module_.infer(at, x);
}

bool graphed_network::holds(const graphed_network& other) const {
  if (this == &other) return true;
  return std::ranges::any_of(children_, [&](const run_part& child) {
    const auto* const inside = std::get_if<graphed_network*>(&child);
    return inside != nullptr && *inside != nullptr && (*inside)->holds(other);
  });
}

void graphed_network::hold(run_part child) {
  const auto* const inside = std::get_if<graphed_network*>(&child);
  if (inside != nullptr && *inside != nullptr && (*inside)->holds(*this)) {
    throw usage_error{
        fmt::format("{} is to be held by a part that it holds itself; let the outer one hold the "
                    "inner one",
                    (*inside)->life_.title())};
  }
  children_.push_back(child);
}

// Fields first: whatever fails below, the part is as one that has not recorded. What was recorded
// is alive until its drain has returned.
void graphed_network::clear(std::source_location place) {
  if (!REPRISE_MUTANT(fields_are_reset_behind_the_drain)) life_.clear();
  lacks_precision_ = false;
  std::shared_ptr<graphed> held = module_.let_go();
  std::exception_ptr first = try_each(children_, [&](const run_part& child) {
    part_events::of_run(life_.run(), child, [&](auto& part) { part_events::clear(part, place); });
  });
  if (held != nullptr) {
    ++clears_;
    const std::exception_ptr own =
        try_each(std::array{held.get()}, [&](graphed* one) { one->drain(place); });
    if (first == nullptr) first = own;
    module_.dropped(*held);
    held.reset();
  }
  if (first != nullptr) std::rethrow_exception(first);
  if (REPRISE_MUTANT(fields_are_reset_behind_the_drain)) life_.clear();
}

void graphed_network::open(site at) {
  if (!life_.is_on()) return;
  const device_ref device = at.stream.device();
  std::string why = why_not_of(module_.module());
  if (why.empty()) {
    why = why_not_in(life_.options().in, device);
    lacks_precision_ = !why.empty();
  }
  if (why.empty() && module_.is_observed()) why = observed_already;
  life_.open(why, counts());
  if (why.empty()) module_.open();
}

part_counts graphed_network::counts() const {
  part_counts all;
  all.calls = module_.counts();
  all.clears = clears_;
  all.retirements = life_.retirements();
  all.low_precision = low_precision_;
  all.replays_inside_windows = module_.replays_inside_windows();
  return all;
}

}  // namespace reprise
