#include "reprise/cuda/records.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"

namespace reprise::cuda {

std::string stream_record::text() const {
  return fmt::format("stream {} (made at {})", number, place_text(made_at));
}

}  // namespace reprise::cuda
