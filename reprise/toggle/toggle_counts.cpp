#include "reprise/toggle/toggle_counts.hpp"

#include <fmt/format.h>

#include <iterator>

namespace reprise {

std::string prometheus_text(const toggle_counts& counts) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto say = [&](const char* name, const char* type, const char* help, auto value) {
    fmt::format_to(out, "# HELP reprise_toggle_{0} {1}\n# TYPE reprise_toggle_{0} {2}\n", name,
                   help, type);
    fmt::format_to(out, "reprise_toggle_{} {}\n", name, value);
  };
  const auto count = [&](const char* name, const char* help, auto value) {
    say(fmt::format("{}_total", name).c_str(), "counter", help, value);
  };
  count("launches", "launches of bound executables", counts.launches);
  count("switches", "sets that were asked for, each unlike the one before", counts.switches);
  count("enable_calls", "calls that switched a node", counts.enable_calls);
  count("copies", "copies of the words of device mode", counts.copies);
  count("waits", "launches that waited for one on another stream", counts.waits);
  count("us", "microseconds spent on bringing executables up to date", counts.us);
  count("rebound", "executables that were bound again", counts.rebound);
  count("refused", "launches that were refused", counts.refused);
  count("anomalies", "works that could not be noted", counts.anomalies);
  count("variants_made", "executables made for a set", counts.variants_made);
  count("variants_dropped", "of those, dropped for room", counts.variants_dropped);
  count("repairs", "executables that were made anew, since switching had slowed them",
        counts.repairs);
  say("bound", "gauge", "executables that are bound", counts.bound);
  say("nodes_on", "gauge", "nodes that were on in the last executable", counts.nodes_on);
  say("nodes_off", "gauge", "nodes that were off in it", counts.nodes_off);
  say("variant_bytes", "gauge", "bytes of executables made for sets", counts.variant_bytes);
  say("demoted_nodes", "gauge", "nodes that are predicted to slow replays", counts.demoted_nodes);
  fmt::format_to(out, "# TYPE reprise_toggle_mode gauge\nreprise_toggle_mode{{mode=\"{}\"}} 1\n",
                 name_of(counts.chosen));
  return text;
}

}  // namespace reprise
