// One backward that is under way: what the core's parts share. For this room's .cpp files.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "reprise/grad/forward_call.hpp"
#include "reprise/grad/graphed_core.hpp"

namespace reprise {

struct graphed_core::owed_backward {
  std::shared_ptr<forward_call> call;
  std::shared_ptr<lane> here;          // whose turn it is
  std::vector<tensor_ref> cotangents;  // by output slot; no data: none was given
  std::uint64_t given = 0;             // bit i: the cotangent of output i is there
  std::uint64_t wanted = 0;            // bit i: the gradient of input i
  bool parameters = true;
  precision in_force;     // casts of the forward, products of now
  bool is_apart = false;  // inside somebody else's capture
};

}  // namespace reprise
