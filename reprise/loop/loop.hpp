// Loops: what takes requests forward one step at a time, such as a sampler of images.
//
// A loop yields steps and launches nothing itself; whoever runs it decides how each step runs. What
// it knows of one request is in the request, so requests may take turns in any order.
#pragma once

#include <concepts>
#include <optional>
#include <span>

#include "reprise/replay/lease.hpp"
#include "reprise/replay/step.hpp"

namespace reprise {

// One step of one request. Borrowed until the next call of next() for this request; what the
// bindings refer to lasts as long.
struct step_call {
  const step* what = nullptr;
  std::span<const binding> with;
};

// next: the request's step from here, the same however often it is asked; nothing when the request
// is finished. advance: takes what that step gave into the request. The results are leased until
// the next run, of whatever request, so it copies what the request keeps, in the order of the
// stream that the steps run on.
template <class L>
concept step_loop = requires(L& l, typename L::request& r, const step_result& done) {
  { l.next(r) } -> std::same_as<std::optional<step_call>>;
  l.advance(r, done);
};

// A loop says that its steps may be recorded with `static constexpr bool may_record = true;`.
template <class L>
inline constexpr bool opts_in_to_recording = requires { requires L::may_record; };

}  // namespace reprise
