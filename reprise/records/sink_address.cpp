#include "reprise/records/sink_address.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "reprise/base/error.hpp"
#include "reprise/formats/printable.hpp"

namespace reprise {

namespace {

constexpr std::string_view clickhouse_scheme = "clickhouse://";

[[noreturn]] void refuse_address(std::string_view what) {
  throw usage_error{fmt::format(
      "a clickhouse address: {}; write clickhouse://[USER:PASSWORD@]HOST:PORT/DATABASE", what)};
}

std::optional<int> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::string without_percents(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain += text[at];
      continue;
    }
    const auto high = at + 2 < text.size() ? hex_digit(text[at + 1]) : std::nullopt;
    const auto low = high ? hex_digit(text[at + 2]) : std::nullopt;
    if (!low) refuse_address("user or password has a '%' without two hexadecimal digits after it");
    plain += static_cast<char>(*high * 16 + *low);
    at += 2;
  }
  return plain;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  });
}

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_word({&c, 1}) || c == '.' || c == '-';
  });
}

clickhouse_address parse_clickhouse(std::string_view rest) {
  clickhouse_address made;
  const std::size_t at = rest.rfind('@');
  if (at != std::string_view::npos) {
    const std::string_view who = rest.substr(0, at);
    const std::size_t colon = who.find(':');
    made.user = without_percents(who.substr(0, colon));
    if (colon != std::string_view::npos) made.password = without_percents(who.substr(colon + 1));
    if (made.user.empty()) refuse_address("no user stands before '@'");
    rest.remove_prefix(at + 1);
  }
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) refuse_address("no database is named");
  const std::string_view place = rest.substr(0, slash);
  made.database = rest.substr(slash + 1);
  if (!is_word(made.database)) refuse_address("a database is letters, digits and '_'");
  const std::size_t colon = place.find(':');
  if (colon == std::string_view::npos) refuse_address("no port is given");
  made.host = place.substr(0, colon);
  if (!is_host(made.host)) refuse_address("the host is no name and no IPv4 address");
  const std::string_view port = place.substr(colon + 1);
  const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), made.port);
  const bool whole = failed == std::errc{} && end == port.data() + port.size();
  if (!whole || made.port < 1 || made.port > 65535) {
    refuse_address("the port is no number from 1 to 65535");
  }
  return made;
}

}  // namespace

std::string clickhouse_address::text() const {
  return fmt::format("clickhouse://{}:{}/{}", host, port, database);
}

sink_address parse_sink_address(std::string_view where) {
  if (where == "count:") return count_address{};
  if (where.starts_with(clickhouse_scheme)) {
    return parse_clickhouse(where.substr(clickhouse_scheme.size()));
  }
  const std::string_view scheme = where.substr(0, where.find("://"));
  if (where.empty() || scheme.size() != where.size() || where.starts_with("count:")) {
    // No more than the scheme: what follows may hold a password.
    throw usage_error{
        fmt::format("records go to {}: it is no sink; give a folder, "
                    "clickhouse://HOST:PORT/DATABASE or count:",
                    formats::quoted_name(scheme))};
  }
  return run_folder_address{std::filesystem::path{where}};
}

}  // namespace reprise
