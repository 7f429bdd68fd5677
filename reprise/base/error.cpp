#include "reprise/base/error.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>

namespace reprise {

namespace {

void write_to_stderr(std::string_view message) noexcept {
  std::fprintf(stderr, "reprise: %.*s\n", static_cast<int>(message.size()), message.data());
}

std::atomic<error_handler> installed_handler{write_to_stderr};

}  // namespace

std::string_view file_of(const std::source_location& place) {
  const std::string_view path = place.file_name();
  return path.substr(path.find_last_of('/') + 1);
}

std::string place_text(const std::source_location& place) {
  return fmt::format("{}:{}", file_of(place), place.line());
}

std::string describe(const call_place& place, std::string_view what) {
  return fmt::format("{} on {} failed: {} ({})", place.call, place.device, what,
                     place_text(place.from));
}

direct_refused::direct_refused(const void* word, std::string_view kind, std::string_view reader)
    : usage_error{fmt::format("{} '{}' reads a direct input and is no kernel that says `indirect`; "
                              "declare its cell so, or the input staged",
                              kind, reader)},
      word_{word},
      reader_{fmt::format("{} '{}'", kind, reader)} {}

out_of_memory::out_of_memory(const call_place& place, std::size_t asked, std::size_t free)
    : device_error{place,
                   fmt::format("out of memory: {} bytes asked, {} free; drop recordings, lower the "
                               "budget of others, or use smaller shapes",
                               asked, free)},
      asked_{asked},
      free_{free} {}

error_handler set_error_handler(error_handler handler) noexcept {
  return installed_handler.exchange(handler != nullptr ? handler : write_to_stderr);
}

void report_error(std::string_view message) noexcept {
  installed_handler.load()(message);
}

}  // namespace reprise
