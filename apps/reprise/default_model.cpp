#include "apps/reprise/default_model.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"

namespace reprise::app {

std::filesystem::path default_model(std::string_view name, std::string_view otherwise) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path below = fs::path{"models"} / name;
  for (const fs::path& base :
       {fs::path{}, here, here / ".." / "..", here / ".." / "share" / "reprise"}) {
    const fs::path folder = base / below;
    if (fs::is_directory(folder, ignored)) return folder.lexically_normal();
  }
  throw usage_error{
      fmt::format("model: models/{} is not beside this program; {}", name, otherwise)};
}

}  // namespace reprise::app
