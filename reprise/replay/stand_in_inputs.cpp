#include "reprise/replay/stand_in_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reprise/base/error.hpp"
#include "reprise/device/enqueue.hpp"

namespace reprise {

namespace {

void require_closed(const signature& declared, const declared_input& in, const dims& shape) {
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] >= 0) continue;
    throw usage_error{
        fmt::format("step '{}': the shape {} of input '{}' leaves an extent open; prepare the step "
                    "for one shape after the other",
                    declared.name(), to_string(shape), in.name)};
  }
}

}  // namespace

stand_in_inputs::stand_in_inputs(site at, const signature& declared, std::span<const dims> shapes)
    : zeros_{at.stream.device(), "inputs of a preparation"} {
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const declared_input& in = declared.inputs()[i];
    require_closed(declared, in, shapes[i]);
    tensor_ref to{nullptr, in.type, shapes[i], contiguous_strides(shapes[i])};
    const std::size_t bytes = std::max<std::size_t>(1, to.bytes());
    const bool on_host = in.mode == input_mode::staged;
    if (on_host) {
      to.data = on_host_.emplace_back(bytes).data();
    } else {
      to.data = on_device_.emplace_back(zeros_, bytes, at.stream, at.place).data();
      fill_bytes(at, to.data, to.bytes(), 0, 1);
    }
    given_.push_back({declared.id(), static_cast<int>(i), to, on_host});
  }
}

}  // namespace reprise
