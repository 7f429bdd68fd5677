#include "reprise/formats/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

#include "reprise/base/error.hpp"
#include "reprise/formats/refusal.hpp"

namespace reprise::formats {

namespace {

class descriptor {
 public:
  explicit descriptor(int fd) : fd_{fd} {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;

  int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void refuse_for(int error, std::string_view what, const std::filesystem::path& path) {
  refuse(path.native(), fmt::format("{} ({})", what, std::generic_category().message(error)),
         "check the path and its permissions");
}

// The length, once it is sure that this is a file with bytes of its own.
std::size_t regular_file_bytes(int fd, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) refuse_for(errno, "the file cannot be read", path);
  if (S_ISDIR(status.st_mode)) {
    refuse(path.native(), "this is a folder, not a file", "give a file inside it");
  }
  if (!S_ISREG(status.st_mode)) {
    refuse(path.native(), "this is not a regular file", "copy its bytes into one");
  }
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

mapped_file::mapped_file(const std::filesystem::path& path) {
  if (path.native().find('\0') != std::string::npos) {
    refuse(path.native(), "the path holds a zero byte", "check the path");
  }
  // Without O_NONBLOCK a named pipe would wait here for its writer.
  const descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.get() < 0) {
    if (errno == ENOENT) refuse(path.native(), "there is no such file", "check the path");
    refuse_for(errno, "the file cannot be opened", path);
  }
  const std::size_t size = regular_file_bytes(file.get(), path);
  if (size == 0) return;  // a mapping of no bytes is an error to the kernel
  void* const start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) refuse_for(errno, "the file cannot be mapped", path);
  bytes_ = {static_cast<const std::byte*>(start), size};
}

mapped_file::~mapped_file() {
  if (bytes_.empty()) return;
  if (::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()) != 0) {
    report_error("a mapped file could not be unmapped");
  }
}

}  // namespace reprise::formats
