// Continuous batching: requests join and leave a running batch between steps.
//
// A request is prefilled alone, which gives its first token; each further token is one decode step
// of all that run, at the smallest batch size that holds them. Rows that pad a batch touch only the
// dummy slot.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "reprise/device/memory.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/tap/tap_spec.hpp"
#include "workloads/decode/llama.hpp"
#include "workloads/decode/requests.hpp"

namespace reprise::decode {

// One decode step as the host sees it: from before the call until the tokens are back.
struct step_time {
  std::int64_t size = 0;  // of the batch
  ran how = ran::eager;
  double us = 0;
};
using step_listener = std::function<void(const step_time&)>;

// Told before each step whose rows it has: requests by their number, padding left out.
using row_listener = std::function<void(std::span<const request_rows>)>;

struct batch_options {
  std::vector<std::int64_t> sizes;  // ascending
  std::int64_t max_tokens = 96;     // per request
  sampling_options sampling;
  step_listener on_step = {};  // told of each decode step; may be empty
  row_listener on_rows = {};   // may be empty
};

// What the scheduler asked for, counted by itself and not by the cache: the plan that the cache's
// own counts must equal.
struct batch_plan {
  std::uint64_t prefills = 0;
  std::map<std::int64_t, std::uint64_t> decode_steps;  // by batch size
};

// Host time of steps as the host sees them: from before the call until the tokens are back.
struct batch_times {
  double prefill_us = 0;
  std::uint64_t prefill_tokens = 0;
  double eager_us = 0;
  std::uint64_t eager_tokens = 0;
  double replayed_us = 0;
  std::uint64_t replayed_tokens = 0;
};

// Called as soon as the host has a request's newest token, which is the last of those generated.
using token_listener = std::function<void(std::size_t index, const request& asked)>;

class batch_runner {
 public:
  // Slots of the model's cache bound how many requests run at once. All outlive the runner.
  batch_runner(stream_ref stream, const llama& model, replay_cache& steps, batch_options options);

  // Runs every request to its end.
  void run(std::vector<request>& requests, const token_listener& listen);

  const batch_plan& plan() const { return plan_; }
  const batch_times& times() const { return times_; }

 private:
  // A request in a slot.
  struct running {
    std::size_t index;
    std::int32_t slot;
  };
  // The inputs of one step, by row.
  struct row_table {
    std::vector<std::int32_t> tokens, positions, slots;
    std::vector<float> temperatures, top_ps;
    std::vector<std::uint64_t> seeds, counters;
  };

  void admit(std::vector<request>& requests, const token_listener& listen);
  void prefill(request& asked, std::size_t index, std::int32_t slot);
  void decode(std::vector<request>& requests, const token_listener& listen);
  void take(request& asked, std::int32_t token);
  std::int64_t size_for(std::size_t rows) const;
  void add_row(row_table& rows, std::int32_t token, std::int32_t position, std::int32_t slot) const;
  void add_sampling(row_table& rows, const request* asked) const;
  outcome step(const model_step& what, const row_table& rows, std::size_t results);

  stream_ref stream_;
  const llama& model_;
  replay_cache& steps_;
  batch_options options_;
  model_step prefill_;
  model_step decode_;
  pinned<std::int32_t> results_;
  std::vector<std::int32_t> free_slots_;
  std::vector<running> running_;
  std::vector<request_rows> rows_of_;  // of the next step
  std::size_t waiting_ = 0;            // index of the next request to admit
  batch_plan plan_;
  batch_times times_;
};

}  // namespace reprise::decode
