#include "reprise/formats/whole_file.hpp"

#include <fstream>
#include <system_error>

namespace reprise::formats {

bool write_whole(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path target = fs::weakly_canonical(file, failed);
  const fs::path partial = target.native() + ".partial";
  std::ofstream out{partial, std::ios::binary};
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (out) fs::rename(partial, target, failed);
  if (out && !failed) return true;
  std::error_code ignored;
  fs::remove(partial, ignored);
  return false;
}

}  // namespace reprise::formats
