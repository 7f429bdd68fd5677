// A step without inputs that is recorded, checked against eager runs, and replayed many times.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/sdm/sdm_figure.hpp"
#include "reprise/replay/cache.hpp"
#include "reprise/replay/step.hpp"

namespace reprise::bench {

class repeated_step {
 public:
  // Whatever the body writes, the signature declares. `begin` puts what runs go on from where the
  // first one finds it; empty: each run does the same.
  repeated_step(stream_ref stream, signature declared, std::function<void(step_scope&)> body,
                std::function<void()> begin = {});

  // Runs it a few times eagerly and as often recorded, and compares all that it declares to write.
  void check();
  // Microseconds of one replay, from the first call of `in_a_row` until the stream was
  // synchronised.
  double time(int in_a_row = 1);
  sdm_step_counts counts() const;

 private:
  std::uint64_t run_and_look(replay_cache& by);

  stream_ref stream_;
  step what_;
  std::function<void()> begin_;
  replay_cache replays_;
  replay_cache eager_;
  std::uint64_t runs_ = 0;
  std::uint64_t eager_runs_ = 0;
  bool equal_ = true;
};

}  // namespace reprise::bench
