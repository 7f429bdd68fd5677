#include "apps/reprise/default_model.hpp"

#include <fmt/format.h>

#include "reprise/base/error.hpp"

namespace reprise::app {

std::filesystem::path default_model(const char* otherwise) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path name = fs::path{"models"} / "tiny-llama";
  for (const fs::path& base :
       {fs::path{}, here, here / ".." / "..", here / ".." / "share" / "reprise"}) {
    const fs::path folder = base / name;
    if (fs::is_directory(folder, ignored)) return folder.lexically_normal();
  }
  throw usage_error{
      fmt::format("model: models/tiny-llama is not beside this program; {}", otherwise)};
}

}  // namespace reprise::app
