// Requests over cpp-httplib: the only file that sees it.
#include "reprise/records/clickhouse/http_call.hpp"

#include <fmt/format.h>
#include <httplib.h>
#include <pthread.h>

#include <csignal>
#include <ctime>
#include <string_view>

#include "reprise/records/clickhouse/framed_body.hpp"

namespace reprise {

namespace {

// What may pass with no byte coming or going; a server under load takes its time over a block.
constexpr int answer_seconds = 60;
constexpr int connection_seconds = 10;

// cpp-httplib writes to sockets without MSG_NOSIGNAL: a server that goes away would end the
// process. Blocked for this thread, the signal is taken off before the mask is as it was.
class no_broken_pipe_signal {
 public:
  no_broken_pipe_signal() {
    sigset_t pending;
    sigemptyset(&pending);
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~no_broken_pipe_signal() {
    constexpr std::timespec at_once{0, 0};
    if (!was_pending_) {
      while (sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  no_broken_pipe_signal(const no_broken_pipe_signal&) = delete;
  no_broken_pipe_signal& operator=(const no_broken_pipe_signal&) = delete;

 private:
  sigset_t pipe_;
  sigset_t before_;
  bool was_pending_ = false;
};

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";
  std::string encoded;
  for (const char c : text) {
    if (plain.find(c) != std::string_view::npos) {
      encoded += c;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

std::string_view what_went_wrong(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection: return "nobody answers there";
    case httplib::Error::ConnectionTimeout: return "nobody answers there in time";
    case httplib::Error::Read: return "the connection broke before the answer came";
    case httplib::Error::Write: return "the connection broke while records were sent";
    default: return "the connection failed";
  }
}

}  // namespace

bool has_http() noexcept {
  return true;
}

http_call http_to(const clickhouse_address& server) {
  return [server](const http_request& request) {
    const no_broken_pipe_signal guard;
    httplib::Client client{server.host, server.port};
    client.set_connection_timeout(connection_seconds);
    client.set_read_timeout(answer_seconds);
    client.set_write_timeout(answer_seconds);
    client.set_keep_alive(false);
    std::string path =
        fmt::format("/?database={}&wait_end_of_query=1&query={}", percent_encoded(server.database),
                    percent_encoded(request.query));
    if (!request.query_id.empty()) path += "&query_id=" + percent_encoded(request.query_id);
    httplib::Headers headers{{"X-ClickHouse-User", server.user},
                             {"X-ClickHouse-Key", server.password}};
    std::string body;
    if (!request.body.empty()) {
      headers.emplace("Content-Encoding", "gzip");
      body = records::framed_body(request.body);
    }
    const httplib::Result result =
        client.Post(path.c_str(), headers, body, "application/octet-stream");
    if (!result) {
      throw connection_broken{fmt::format("{}: {}, start the server or check host and port",
                                          server.text(), what_went_wrong(result.error()))};
    }
    return http_answer{result->status, result->body};
  };
}

}  // namespace reprise
