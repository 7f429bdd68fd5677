#include "apps/reprise/metrics_server.hpp"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <utility>

#include "reprise/base/error.hpp"

namespace reprise::app {

namespace {

constexpr const char* loopback = "127.0.0.1";

// The library's own choice, SO_REUSEPORT, would share the port with another run.
void let_the_port_be_used_again(int socket) {
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

}  // namespace

struct metrics_server::running {
  httplib::Server server;
  int port = 0;
  std::atomic<bool> ended{false};
  std::thread thread;
};

metrics_server::metrics_server(int port, std::function<std::string()> text)
    : running_{std::make_unique<running>()} {
  httplib::Server& server = running_->server;
  server.new_task_queue = [] { return new httplib::ThreadPool{2}; };
  // A run that is over waits for nobody who keeps a connection open.
  server.set_keep_alive_max_count(1);
  server.set_read_timeout(1);
  server.set_write_timeout(1);
  server.set_socket_options(let_the_port_be_used_again);
  server.Get("/metrics", [text = std::move(text)](const httplib::Request&, httplib::Response& to) {
    to.set_content(text(), "text/plain; version=0.0.4");
  });
  running_->port = port == 0                             ? server.bind_to_any_port(loopback)
                   : server.bind_to_port(loopback, port) ? port
                                                         : -1;
  if (running_->port < 0) {
    throw usage_error{fmt::format(
        "--metrics-port {}: the port cannot be had; give another, or 0 for any that is free",
        port)};
  }
  running_->thread = std::thread{[on = running_.get()] {
    on->server.listen_after_bind();
    on->ended = true;
  }};
  // Stopping a server that does not listen yet would be missed.
  while (!server.is_running() && !running_->ended) std::this_thread::yield();
}

metrics_server::~metrics_server() {
  running_->server.stop();
  running_->thread.join();
}

int metrics_server::port() const {
  return running_->port;
}

}  // namespace reprise::app
