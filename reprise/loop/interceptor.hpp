// Interceptors: what runs another step in the place of a loop's own, such as one that reuses half
// of the last result, or adds noise.
//
// They are given to a loop_runner. Each request is asked about by a function of its own, which owns
// what the interceptor remembers of that request; it lives in the request, is copied and moved with
// it, and dies with it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "reprise/loop/loop.hpp"

namespace reprise {

// Asked before each step of one request, and again about a step that threw: the step to run
// instead, with the same inputs, or null to leave it. The replacement is the interceptor's, which
// keeps it as long as the cache runs it, and gives the same one for the same step: another one
// would be recorded anew. It shares the signature of the loop's step, or has a variant() of it, so
// that the loop reads its results as those of its own step.
using interception = std::function<const step*(const step_call&)>;

struct interceptor {
  std::string name;                 // in the reason of an eager run: "interceptor NAME"
  bool alters_distribution = true;  // results are not those of the loop's own steps
  bool graph_safe = false;          // its replacements may be recorded; otherwise they run eagerly
  std::function<interception()> begin;  // called once for each request
};

// What interceptors remember of one request: a member of the request, called `intercepted`.
class interceptions {
 private:
  friend class loop_runner;
  struct entry {
    std::shared_ptr<const interceptor> by;
    interception ask;
  };

  const step* ask(const std::shared_ptr<const interceptor>& by, const step_call& call);

  std::vector<entry> entries_;
};

}  // namespace reprise
