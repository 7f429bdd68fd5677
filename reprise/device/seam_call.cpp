#include "reprise/device/seam_call.hpp"

namespace reprise {

std::string_view name_of(seam_call call) {
  switch (call) {
    case seam_call::kernel: return "kernel";
    case seam_call::copy: return "copy";
    case seam_call::fill: return "fill";
    case seam_call::host_call: return "host_call";
    case seam_call::empty: return "empty";
    case seam_call::external: return "external";
    case seam_call::event_record: return "event_record";
    case seam_call::event_wait: return "event_wait";
    case seam_call::allocate: return "allocate";
    case seam_call::release: return "release";
    case seam_call::create_stream: return "create_stream";
    case seam_call::create_event: return "create_event";
    case seam_call::synchronize: return "synchronize";
    case seam_call::query: return "query";
    case seam_call::capture: return "capture";
    case seam_call::clone: return "clone";
    case seam_call::instantiate: return "instantiate";
    case seam_call::launch: return "launch";
    case seam_call::enable: return "enable";
    case seam_call::set_parameters: return "set_parameters";
    case seam_call::update: return "update";
  }
  return "?";
}

}  // namespace reprise
