#include "reprise/train/loss_workspace.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/replay/recorded_body.hpp"

namespace reprise {

tensor_ref loss_workspace::all() const {
  const dims shape{static_cast<std::int64_t>(held_.bytes())};
  return {held_.data(), dtype::u8, shape, contiguous_strides(shape)};
}

std::byte* loss_workspace::bytes_for(site at, std::size_t bytes) {
  if (bytes <= held_.bytes()) return held_.data();
  if (recorded_body::is_here() || at.stream.capturing()) {
    throw usage_error{
        fmt::format("a loss workspace of {} bytes would grow to {} in a body that is being "
                    "recorded; run the loss once eagerly with a batch of that size",
                    held_.bytes(), bytes)};
  }
  block grown{pool_, bytes, at.stream, at.place};
  // What it held is given back behind the work that used it.
  if (held_.bytes() != 0) held_.freed_on(at.stream);
  held_ = std::move(grown);
  version_.bump();
  return held_.data();
}

}  // namespace reprise
