#include "reprise/toggle/automatic.hpp"

#include <fmt/format.h>

#include "reprise/base/mutant.hpp"

namespace reprise {

namespace {

// A set that came a second time comes a third.
constexpr std::uint64_t recurs_from = 2;

}  // namespace

double predicted_demotion_us(std::size_t nodes, std::size_t touched) {
  if (nodes <= toggle_costs::never_demoted) return 0;
  return toggle_costs::demotion_us * static_cast<double>(touched);
}

toggle_choice choose_way(const toggle_facts& f) {
  constexpr auto host = toggle_mode::host_lazy;
  constexpr auto variant = toggle_mode::variants;
  if (!f.may_have_twins) return {host, "no other executable may run in its place"};
  if (f.off == 0) return {host, "all are on: the executable itself"};
  if (f.has_variant) return {variant, "its executable is there: no call"};
  if (f.off == f.switchable) return {variant, "none is on: what is not in the graph costs nothing"};
  if (f.wanted_before >= recurs_from) {
    return {variant, fmt::format("the set came {} times before", f.wanted_before)};
  }
  const auto changed = static_cast<double>(f.changed);
  const double demotion = predicted_demotion_us(f.nodes, f.touched + f.changed) -
                          predicted_demotion_us(f.nodes, f.touched);
  const double each = toggle_costs::off_node_us * static_cast<double>(f.off) + demotion;
  const double by_host = changed * (toggle_costs::host_call_us + toggle_costs::next_launch_us) +
                         each * f.launches_per_change;
  const bool is_dear = by_host > toggle_costs::variant_us;
  return {
      is_dear ? variant : host,
      fmt::format("{} of {} nodes change: {:.0f} us by the host over {:.0f} launches, {:.0f} us "
                  "for another executable",
                  f.changed, f.nodes, by_host, f.launches_per_change, toggle_costs::variant_us)};
}

}  // namespace reprise
