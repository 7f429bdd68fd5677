// `--metrics-port`: counts as Prometheus text over HTTP while a run goes on, on the loopback alone.
//
// It has threads of its own, and is cpp-httplib's; a build without that says how to get it.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace reprise::app {

class metrics_server {
 public:
  // Answers GET /metrics from now on. `text` is called for each request, by a thread of the server,
  // until the destructor has returned. Port 0: any that is free. Throws usage_error, one line,
  // where the port cannot be had.
  metrics_server(int port, std::function<std::string()> text);
  ~metrics_server();
  metrics_server(const metrics_server&) = delete;
  metrics_server& operator=(const metrics_server&) = delete;

  int port() const;

 private:
  struct running;
  std::unique_ptr<running> running_;
};

}  // namespace reprise::app
