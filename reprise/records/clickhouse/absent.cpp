// A build without cpp-httplib: ClickHouse sinks are not opened, and say so in one line.
#include "reprise/records/clickhouse/http_call.hpp"

namespace reprise {

bool has_http() noexcept {
  return false;
}

http_call http_to(const clickhouse_address& server) {
  throw usage_error{
      server.text() +
      ": this build has no cpp-httplib; install it (Debian's libcpp-httplib-dev), and "
      "configure and build again"};
}

}  // namespace reprise
