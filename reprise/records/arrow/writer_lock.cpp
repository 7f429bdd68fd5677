#include "reprise/records/arrow/writer_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "reprise/formats/refusal.hpp"
#include "reprise/records/arrow/run_manifest.hpp"

namespace reprise::records {

namespace {

// Of the open file, not of the process (F_OFD_SETLK): two sinks of one process exclude each other
// too, and asking who holds it takes nothing.
struct ::flock whole_file_lock() {
  struct ::flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  return wanted;
}

}  // namespace

writer_lock::writer_lock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / writer_lock_file;
  file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file_ < 0) {
    formats::refuse(
        folder.native(),
        fmt::format("no file can be written there ({})", std::generic_category().message(errno)),
        "give a folder that takes files");
  }
  struct ::flock lock = whole_file_lock();
  if (::fcntl(file_, F_OFD_SETLK, &lock) != 0) {
    ::close(std::exchange(file_, -1));
    formats::refuse(folder.native(), "somebody is writing a run there", "give another folder");
  }
}

writer_lock::~writer_lock() {
  if (file_ >= 0) ::close(file_);
}

bool is_being_written(const std::filesystem::path& folder) {
  const int file = ::open((folder / writer_lock_file).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  struct ::flock lock = whole_file_lock();
  const bool held = ::fcntl(file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(file);
  return held;
}

}  // namespace reprise::records
