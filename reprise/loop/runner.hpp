// Runs loops: each step is replayed if that is right, recorded if that is new, and otherwise run
// eagerly, with the reason in the counts of the cache.
//
// What runs is always the current step with the current inputs, so that N requests that take turns
// give what each gives alone, bit for bit. Nothing of a request stays here. One thread at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "reprise/base/mutant.hpp"
#include "reprise/loop/interceptor.hpp"
#include "reprise/loop/loop.hpp"
#include "reprise/replay/cache.hpp"

namespace reprise {

struct loop_options {
  bool exact = false;  // an interceptor that alters the distribution is refused
};

// A step runs eagerly when
//   the loop did not opt in to recording: "loop did not opt in";
//   an interceptor that is not graph safe replaces it: "interceptor NAME";
//   the cache says so, as for a step that is never captured: the step's own word.
class loop_runner {
 public:
  // The cache outlives the runner, and may serve others too.
  explicit loop_runner(replay_cache& cache, loop_options options = {});

  // Asked behind those installed before; the first that replaces a step wins, and those behind it
  // are not asked about that step. Throws usage_error for a second one that alters the
  // distribution, for any such one in exact mode, for a name that is taken, and where `begin` is
  // missing.
  void install(interceptor added);

  // Takes the request one step forward, in stream order. False: it was finished already. Throws
  // what the loop, the interceptors and replay_cache::run throw; the request is then where it was
  // before the step. With interceptors installed, a request without a member `interceptions
  // intercepted` is refused.
  template <step_loop L>
  bool step(site at, L& loop, typename L::request& r) {
    const std::optional<step_call> call = loop.next(r);
    if (!call) return false;
    loop.advance(r, take(at, *call, opts_in_to_recording<L>, interceptions_of(r)));
    return true;
  }

  // Takes turns among the requests, one step each, until all are finished. `cancelled(i)` is asked
  // before each step of request i: true leaves it as its last whole step left it, and the others
  // go on.
  template <step_loop L>
  void run(site at, L& loop, std::span<typename L::request> requests,
           const std::function<bool(std::size_t)>& cancelled = {}) {
    std::vector<bool> over(requests.size());
    while (std::ranges::find(over, false) != over.end()) {
      for (std::size_t i = 0; i < requests.size(); ++i) {
        if (over[i]) continue;
        over[i] = (cancelled && cancelled(i)) || !step(at, loop, requests[i]);
        if (over[i] && REPRISE_MUTANT(one_request_that_is_over_ends_all)) return;
      }
    }
  }

 private:
  // One that is installed, and the reason of the steps that run eagerly because of it.
  struct installed {
    std::shared_ptr<const interceptor> what;
    std::shared_ptr<const reason> why;
  };

  template <class Request>
  static interceptions* interceptions_of(Request& r) {
    if constexpr (requires { static_cast<interceptions*>(&r.intercepted); }) {
      return &r.intercepted;
    } else {
      return nullptr;
    }
  }

  step_result take(site at, step_call call, bool may_record, interceptions* of);
  // Puts the first replacement into the call; null when there is none.
  const installed* intercept(step_call& call, interceptions* of) const;

  replay_cache* cache_;
  loop_options options_;
  std::vector<installed> interceptors_;
  std::shared_ptr<const reason> not_opted_in_;
};

}  // namespace reprise
