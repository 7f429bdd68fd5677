// The ways of running one chain that are measured against each other.
#pragma once

#include <functional>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "bench/replay/bare_chain.hpp"
#include "bench/replay/chain_step.hpp"
#include "bench/replay/replay_bench.hpp"

namespace reprise::bench {

// One way: call it, then ask what came out. `row` is filled as it goes.
struct contestant {
  replay_row row;
  std::function<void()> call;
  std::function<const float*()> result;  // device memory of the last call's output
  std::function<step_counts()> counts;   // null of a bare launch
  std::vector<double> host_us;
  std::vector<double> device_us;
};

// Everything that runs for one number of nodes. `native_stream` is null where there is no bare
// launch. The stream and the block outlive it, and the stream is idle when it goes.
class contestants {
 public:
  contestants(pool& memory, stream_ref stream, const host_block& block, std::int64_t nodes,
              void* native_stream);

  std::span<contestant> all() { return all_; }

 private:
  // A step with the cache that runs it.
  struct cached {
    cached(const chain_sources& sources, std::int64_t nodes, int facts, bool staged,
           stream_ref stream, bool record)
        : chain{sources, nodes, facts, staged}, cache{stream.device(), {.record = record}} {}

    chain_step chain;
    replay_cache cache;
    std::optional<step_result> last;
  };

  void add_cached(contest how, int facts, bool staged);
  void add_bare(pool& memory, bool staged, void* native_stream);

  stream_ref stream_;
  const host_block& block_;
  std::int64_t nodes_;
  chain_sources sources_;
  std::list<cached> cached_;
  std::list<bare_chain> bare_;
  std::vector<contestant> all_;
};

}  // namespace reprise::bench
