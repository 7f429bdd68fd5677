// A run of a body inside the capture of somebody else: in memory of its own, which belongs to that
// graph until it goes. For this room's .cpp files.
#pragma once

#include <span>
#include <vector>

#include "reprise/base/error.hpp"
#include "reprise/replay/run_body.hpp"
#include "reprise/replay/run_memory.hpp"

namespace reprise {

class body_apart {
 public:
  // All inputs lie on the device, and the step draws no random numbers. Its memory lasts as long as
  // this object.
  body_apart(site at, const step& what, bindings given, pool& from, observers watching = {})
      : memory_{from, at.stream} {
    const signature& declared = what.declared();
    const input_layout layout{declared, given, direct_inputs(declared, given),
                              direct_as::addresses};
    std::byte* const staged = memory_.keep(layout.bytes(), at.place);
    const break_taker refuses = [&](std::string_view why, const break_work&) {
      throw usage_error{"op '" + what.name() + "': the break '" + std::string{why} +
                        "' cannot be taken inside a capture; call the op outside"};
    };
    run_ = run_body(at, what, given, layout, staged, memory_, {}, refuses, watching);
    check_outputs(what, given, run_.outputs);
    copy_outputs(at, given, run_.outputs);
  }

  std::span<const tensor_ref> outputs() const { return run_.outputs; }

 private:
  run_memory memory_;
  body_run run_;
};

}  // namespace reprise
