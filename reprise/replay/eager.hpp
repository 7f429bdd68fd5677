// Running steps eagerly: the same body, in memory of its own that every eager run reuses.
//
// The memory is outside all recordings and budgets, and as large as the largest step that ran or
// was warmed up here, so falling back does not depend on what recordings hold. A step whose input
// is an output of the run before runs in a memory beside that one. One thread at a time.
#pragma once

#include <memory>
#include <vector>

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

  // The bindings passed signature::check. Outputs are leased until the next run here, and may be
  // its inputs. A break of a run may run other steps here: they get memory of their own.
  // `took` gets what the body took, unless it is null.
  step_result run(site at, const step& what, bindings given, observers watching,
                  std::shared_ptr<const reason> why, run_needs* took = nullptr);
  // Has memory for a run that takes `bytes`, so that it cannot run out later.
  void reserve(std::size_t bytes, site at);

  // The host waits for the last run.
  void drain(std::source_location place);
  std::size_t bytes() const;

 private:
  struct arena {
    std::unique_ptr<run_memory> memory;
    std::shared_ptr<output_table> outputs;
  };

  step_result run_here(site at, const step& what, bindings given, observers watching,
                       std::shared_ptr<const reason> why, run_needs* took);
  arena& arena_apart_from(bindings given, stream_ref stream);

  pool memory_;
  staging staging_;
  stream_order order_;
  std::vector<arena> arenas_;  // one, and more where steps are chained
  bool running_ = false;
  std::unique_ptr<eager_runner> inner_;  // for runs in breaks of runs here
};

}  // namespace reprise
