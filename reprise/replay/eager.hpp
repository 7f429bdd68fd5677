// Running steps eagerly: the same body, in memory of its own that every eager run reuses.
//
// The memory is outside all recordings and grows to the largest step that ran, so falling back does
// not depend on what recordings hold. One thread at a time.
#pragma once

#include <memory>

#include "reprise/replay/lease.hpp"
#include "reprise/replay/run_body.hpp"
#include "reprise/replay/stream_order.hpp"

namespace reprise {

class eager_runner {
 public:
  explicit eager_runner(device_ref device);
  ~eager_runner();
  eager_runner(const eager_runner&) = delete;
  eager_runner& operator=(const eager_runner&) = delete;

  // The bindings passed signature::check. Outputs are leased until the next run here.
  step_result run(site at, const step& what, bindings given, observers watching,
                  std::shared_ptr<const reason> why);

  // The host waits for the last run.
  void drain(std::source_location place);
  std::size_t bytes() const { return memory_.bytes() + staging_.pinned_bytes(); }

 private:
  pool memory_;
  staging staging_;
  stream_order order_;
  std::unique_ptr<run_memory> arena_;  // made at the first run
  std::shared_ptr<output_table> table_;
};

}  // namespace reprise
