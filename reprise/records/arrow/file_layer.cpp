#include "reprise/records/arrow/file_layer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "reprise/formats/whole_file.hpp"

namespace reprise {

file_layer system_files() {
  return {.create =
              [](const std::filesystem::path& path) {
                const int file =
                    ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
                return file < 0 ? -errno : file;
              },
          .write = [](int file, std::span<const std::byte> bytes) -> std::int64_t {
            const ::ssize_t written = ::write(file, bytes.data(), bytes.size());
            return written < 0 ? -errno : written;
          },
          .truncate =
              [](int file, std::uint64_t bytes) {
                return ::ftruncate(file, static_cast<::off_t>(bytes)) != 0 ? -errno : 0;
              },
          .sync = [](int file) { return ::fdatasync(file) != 0 ? -errno : 0; },
          .close = [](int file) { return ::close(file) != 0 ? -errno : 0; },
          .write_whole = formats::write_whole};
}

}  // namespace reprise
