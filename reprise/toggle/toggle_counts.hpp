// What a session has done, for metrics. A value; survives the end of the session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "reprise/toggle/toggle_options.hpp"

namespace reprise {

struct toggle_counts {
  std::uint64_t launches = 0;  // of bound executables
  std::uint64_t switches = 0;  // sets that were asked for, each unlike the one before
  std::uint64_t enable_calls = 0;
  std::uint64_t copies = 0;  // of the words of device mode
  std::uint64_t waits = 0;   // of a launch for one on another stream, since another executable runs
  double us = 0;             // spent on bringing executables up to date

  std::size_t bound = 0;                    // executables, now
  std::size_t nodes_on = 0, nodes_off = 0;  // in the last one that was brought up to date
  std::uint64_t rebound = 0;                // executables that the gate bound by itself
  std::uint64_t refused = 0;                // launches
  std::uint64_t anomalies = 0;              // of windows

  std::uint64_t variants_made = 0, variants_dropped = 0;
  std::size_t variant_bytes = 0;  // held now, by the device's estimate
  std::size_t demoted_nodes = 0;  // predicted to make every replay slower
  double demotion_us = 0;         // what that has cost by now, predicted
  std::uint64_t repairs = 0;      // executables that were instantiated anew for it

  toggle_mode chosen = toggle_mode::automatic;  // by the last change
  std::string why;                              // that one
};

// Prometheus text.
std::string prometheus_text(const toggle_counts& counts);

}  // namespace reprise
