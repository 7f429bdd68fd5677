// An adversarial device for tests that need no kernels: fills, copies and host calls say enough.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reprise/device/device.hpp"
#include "reprise/device/enqueue.hpp"
#include "reprise/device/graph.hpp"
#include "reprise/device/host_thread.hpp"
#include "reprise/device/memory.hpp"
#include "reprise/sim/controls.hpp"
#include "reprise/sim/device.hpp"
#include "tests/support/observe.hpp"
#include "tests/support/order.hpp"

namespace reprise::test {

// A device under one seed, and its journal, which may be read after it is gone.
class simulated {
 public:
  explicit simulated(std::uint64_t seed, sim::adversary_options options = {})
      : seen_{std::make_shared<sim::journal>()} {
    options.seed = seed;
    options.into = seen_;
    opened_ = std::make_unique<device>(sim::open_adversary(options));
  }
  ~simulated() { close(); }

  operator device_ref() const { return *opened_; }
  device_ref dev() const { return *opened_; }
  sim::controls& controls() const { return *sim::controls_of(*opened_); }
  const sim::journal& seen() const { return *seen_; }
  // What is said while it closes is for its findings to say.
  void close() {
    const reports quiet;
    opened_.reset();
  }

  std::vector<sim::finding_kind> kinds() const {
    std::vector<sim::finding_kind> all;
    for (const sim::finding& f : seen_->findings) all.push_back(f.kind);
    return all;
  }

 private:
  std::shared_ptr<sim::journal> seen_;
  std::unique_ptr<device> opened_;
};

// Runs `scenario` under seeds 1 to `seeds`; what each found first, empty where nothing. What it
// throws is a finding told.
template <class Scenario>
std::vector<sim::finding> first_findings(std::uint64_t seeds, Scenario&& scenario) {
  std::vector<sim::finding> all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    simulated dev{seed};
    const reports quiet;
    try {
      scenario(dev);
    } catch (const device_error&) {
    }
    dev.close();
    all.push_back(dev.seen().findings.empty() ? sim::finding{} : dev.seen().findings.front());
  }
  return all;
}

template <class T>
std::vector<T> fetched(stream_ref after, view<T> from) {
  std::vector<T> host(from.size());
  copy(after, read<T>{from}, write<T>{view<T>{host.data(), host.size()}});
  after.synchronize();
  return host;
}

}  // namespace reprise::test
