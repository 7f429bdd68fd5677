#include "apps/reprise/default_model.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"

namespace reprise::app {

namespace {

namespace fs = std::filesystem;

// Where one of this kind is, or an empty path.
fs::path shipped(const fs::path& below, fs::file_type kind) {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& base :
       {fs::path{}, here, here / ".." / "..", here / ".." / "share" / "reprise"}) {
    const fs::path found = base / below;
    if (fs::status(found, ignored).type() == kind) return found.lexically_normal();
  }
  return {};
}

}  // namespace

std::filesystem::path default_model(std::string_view name, std::string_view otherwise) {
  fs::path found = shipped(fs::path{"models"} / name, fs::file_type::directory);
  if (!found.empty()) return found;
  throw usage_error{
      fmt::format("model: models/{} is not beside this program; {}", name, otherwise)};
}

std::filesystem::path default_text(std::string_view file, std::string_view otherwise) {
  fs::path found = shipped(file, fs::file_type::regular);
  if (!found.empty()) return found;
  throw usage_error{fmt::format("text: {} is not beside this program; {}", file, otherwise)};
}

}  // namespace reprise::app
