// The errors that Reprise throws, one small hierarchy.
//
// What a caller can expect and act on (an eager run, a cache miss, a full ring) is a value and
// never an exception. Each message names the rule, the thing and the remedy. All are safe to copy
// across threads.
#pragma once

#include <cstddef>
#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace reprise {

class error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller broke a rule, or gave input that cannot be used. Nothing was changed.
class usage_error : public error {
 public:
  using error::error;
};

// Reading a result that a later run has overwritten.
class stale_error : public error {
 public:
  using error::error;
};

// Somebody who is no `indirect` kernel wants the elements of a direct input, which lies behind a
// word of device memory. The recorder takes it as the sign to stage that input.
class direct_refused : public usage_error {
 public:
  direct_refused(const void* word, std::string_view kind, std::string_view reader);

  const void* word() const noexcept { return word_; }
  const std::string& reader() const noexcept { return reader_; }  // "copy 'copy'"

 private:
  const void* word_;
  std::string reader_;
};

// Where a device call failed: which call, on which device, from which source line.
struct call_place {
  std::string_view call;
  std::string_view device;
  std::source_location from;
};

// "file.cpp", and "file.cpp:12": folders say more of the machine than of the program.
std::string_view file_of(const std::source_location& place);
std::string place_text(const std::source_location& place);

// "launch on cuda:0 failed: what (file.cpp:12)"
std::string describe(const call_place& place, std::string_view what);

// A device call failed.
class device_error : public error {
 public:
  device_error(const call_place& place, std::string_view what)
      : error{describe(place, what)}, call_{place.call}, device_{place.device}, from_{place.from} {}

  const std::string& call() const noexcept { return call_; }
  const std::string& device() const noexcept { return device_; }
  const std::source_location& from() const noexcept { return from_; }

 private:
  std::string call_;
  std::string device_;
  std::source_location from_;
};

// A capture could not be finished; the stream is usable again.
class capture_error : public device_error {
 public:
  using device_error::device_error;
};

class out_of_memory : public device_error {
 public:
  out_of_memory(const call_place& place, std::size_t asked, std::size_t free);

  std::size_t asked() const noexcept { return asked_; }
  std::size_t free() const noexcept { return free_; }  // as the device says it; 0 where unknown

 private:
  std::size_t asked_;
  std::size_t free_;
};

// Destructors never throw: what fails in one is told here. The default writes one line to stderr.
// Thread safe; returns the handler that was installed before.
using error_handler = void (*)(std::string_view message) noexcept;
error_handler set_error_handler(error_handler handler) noexcept;
void report_error(std::string_view message) noexcept;

}  // namespace reprise
