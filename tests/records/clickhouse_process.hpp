// Debian's clickhouse-server on 127.0.0.1, with a configuration and a folder of its own: started,
// killed and started again by a test. With REPRISE_SERVER_LOG its log goes to stderr.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "reprise/records/clickhouse/http_call.hpp"
#include "reprise/records/sink_address.hpp"
#include "tests/records/support.hpp"

namespace reprise::test {

// A port that nobody listens on, now.
inline int free_port() {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (::bind(socket, reinterpret_cast<sockaddr*>(&at), length) != 0) std::abort();
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &length) != 0) std::abort();
  ::close(socket);
  return ntohs(at.sin_port);
}

class clickhouse_process {
 public:
  static bool is_installed() {
    return std::system("command -v clickhouse-server >/dev/null 2>&1") == 0;
  }

  clickhouse_process() {
    write("config.xml",
          "<yandex><logger><level>information</level><console>1</console></logger><http_port>" +
              std::to_string(port_) + "</http_port><tcp_port>" + std::to_string(free_port()) +
              "</tcp_port><listen_host>127.0.0.1</listen_host><path>" + path("data/") +
              "</path><tmp_path>" + path("tmp/") + "</tmp_path><users_config>" + path("users.xml") +
              "</users_config><default_profile>default</default_profile>"
              "<default_database>default</default_database>"
              "<mark_cache_size>67108864</mark_cache_size></yandex>");
    const auto user = [](const std::string& name, const std::string& password) {
      return "<" + name + "><password>" + password +
             "</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>"
             "<quota>default</quota></" +
             name + ">";
    };
    write("users.xml", "<yandex><profiles><default></default></profiles><users>" +
                           user("default", "") + user("scribe", "right") +
                           "</users><quotas><default></default></quotas></yandex>");
    start();
  }
  ~clickhouse_process() { kill(); }
  clickhouse_process(const clickhouse_process&) = delete;
  clickhouse_process& operator=(const clickhouse_process&) = delete;

  // Returns when it takes connections.
  void start() {
    std::promise<pid_t> ready;
    std::future<pid_t> is_ready = ready.get_future();
    // The thread that forks lives as long as the server, which is killed when that thread ends
    // (PR_SET_PDEATHSIG), so that a test that crashes leaves none behind.
    runner_ = std::thread{[this, ready = std::move(ready)]() mutable { run(std::move(ready)); }};
    child_ = is_ready.get();
    if (child_ == 0) {
      runner_.join();
      ADD_FAILURE() << "clickhouse-server did not start";
    }
  }

  void kill() {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
    runner_.join();
    child_ = 0;
  }
  bool is_running() const { return child_ > 0; }

  clickhouse_address address() const {
    return {.host = "127.0.0.1", .port = port_, .database = "default"};
  }

  // What it answers to a query by itself.
  std::string ask(const std::string& query) const {
    const http_answer answer = http_to(address())({.query_id = "", .query = query});
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }

 private:
  void run(std::promise<pid_t> ready) const {
    int ends[2];
    if (::pipe(ends) != 0) std::abort();
    const std::string config = "--config-file=" + path("config.xml");
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      ::dup2(ends[1], STDERR_FILENO);
      ::close(ends[0]);
      ::close(ends[1]);
      ::execlp("clickhouse-server", "clickhouse-server", config.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    // Read to the end, so that the server is never held up by its own log.
    std::FILE* const lines = ::fdopen(ends[0], "r");
    bool told = false;
    std::string all;
    char line[4096];
    while (std::fgets(line, sizeof line, lines) != nullptr) {
      if (std::getenv("REPRISE_SERVER_LOG") != nullptr) std::fputs(line, stderr);
      if (told) continue;
      all += line;
      told = has(line, "Ready for connections");
      if (told) ready.set_value(child);
    }
    std::fclose(lines);
    if (told) return;
    std::fputs(all.c_str(), stderr);
    ::waitpid(child, nullptr, 0);
    ready.set_value(0);
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream{path(name)} << text;
  }

  scratch_folder folder_{true};
  int port_ = free_port();
  pid_t child_ = 0;
  std::thread runner_;
};

}  // namespace reprise::test
