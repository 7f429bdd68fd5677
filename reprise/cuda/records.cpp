#include "reprise/cuda/records.hpp"

#include <fmt/format.h>

#include <string_view>

namespace reprise::cuda {

std::string stream_record::text() const {
  const std::string_view path = made_at.file_name();
  return fmt::format("stream {} (made at {}:{})", number, path.substr(path.find_last_of('/') + 1),
                     made_at.line());
}

}  // namespace reprise::cuda
