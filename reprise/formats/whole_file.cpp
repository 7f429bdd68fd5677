#include "reprise/formats/whole_file.hpp"

#include <fstream>
#include <system_error>
#include <vector>

namespace reprise::formats {

namespace {

namespace fs = std::filesystem;

// Beside it, and through a link.
struct partial_file {
  fs::path target;
  fs::path partial;
};

bool write_partial(const partial_file& to, std::span<const std::byte> bytes) {
  std::ofstream out{to.partial, std::ios::binary};
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
  out.close();
  return static_cast<bool>(out);
}

}  // namespace

bool write_together(std::span<const file_bytes> files) {
  std::vector<partial_file> written;
  std::error_code failed;
  bool all = true;
  for (const file_bytes& one : files) {
    const fs::path target = fs::weakly_canonical(one.file, failed);
    written.push_back({target, target.native() + ".partial"});
    all = write_partial(written.back(), one.bytes);
    if (!all) break;
  }
  std::size_t renamed = 0;
  while (all && renamed != written.size()) {
    fs::rename(written[renamed].partial, written[renamed].target, failed);
    all = !failed;
    if (all) ++renamed;
  }
  std::error_code ignored;
  for (; renamed != written.size(); ++renamed) fs::remove(written[renamed].partial, ignored);
  return all;
}

bool write_whole(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  const file_bytes one{file, bytes};
  return write_together({&one, 1});
}

}  // namespace reprise::formats
