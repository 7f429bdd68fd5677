#include "apps/reprise/whole_number.hpp"

#include <charconv>
#include <cstdint>
#include <system_error>

namespace reprise::app {

std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [next, failed] = std::from_chars(text.data(), end, value);
  return failed == std::errc{} && next == end ? "" : text + " is no whole number from 0 to 2^64-1";
}

std::string not_empty(const std::string& text) {
  return text.empty() ? "an empty text is no value; leave the option out" : "";
}

}  // namespace reprise::app
