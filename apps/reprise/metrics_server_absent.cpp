// A build without cpp-httplib: metrics go to a file, and a port is refused in one line.
#include "apps/reprise/metrics_server.hpp"
#include "reprise/base/error.hpp"

namespace reprise::app {

struct metrics_server::running {};

metrics_server::metrics_server(int, std::function<std::string()>) {
  throw usage_error{
      "--metrics-port: this build has no cpp-httplib; install it (Debian's libcpp-httplib-dev), "
      "and "
      "configure and build again, or give --metrics FILE"};
}

metrics_server::~metrics_server() = default;

int metrics_server::port() const {
  return 0;
}

}  // namespace reprise::app
