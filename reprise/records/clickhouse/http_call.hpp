// One HTTP request to a ClickHouse server, as a function: over cpp-httplib, or a test's.
#pragma once

#include <functional>
#include <string>

#include "reprise/base/error.hpp"
#include "reprise/records/sink_address.hpp"

namespace reprise {

struct http_request {
  std::string query_id;  // empty: the server chooses one
  std::string query;     // SQL
  std::string body{};    // what an INSERT inserts
};

struct http_answer {
  int status = 0;
  std::string body{};
};

// Nothing is known of the request: no answer came. It may have been done, or still be running.
class connection_broken : public error {
 public:
  using error::error;
};

// Throws connection_broken.
using http_call = std::function<http_answer(const http_request&)>;

// Whether this build has cpp-httplib.
bool has_http() noexcept;

// A connection for each request. Calls are made one at a time, from any thread. Throws usage_error,
// which says what to install, in a build without cpp-httplib.
http_call http_to(const clickhouse_address& server);

}  // namespace reprise
