#include "reprise/formats/refusal.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise::formats {

void refuse(std::string_view file, std::string_view what, std::string_view remedy) {
  throw usage_error{fmt::format("{}: {}, {}", printable(file), what, remedy)};
}

void refuse_tensor(std::string_view file, std::string_view what, std::string_view tensor,
                   std::string_view remedy) {
  throw usage_error{
      fmt::format("{}: {} [tensor {}], {}", printable(file), what, quoted_name(tensor), remedy)};
}

}  // namespace reprise::formats
