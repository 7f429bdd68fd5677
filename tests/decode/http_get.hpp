// One GET of a port of this machine, as anything that scrapes metrics makes it.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace reprise::test {

// What was answered, head and all; empty where nobody answers.
inline std::string http_get(int port, const std::string& path, const char* host = "127.0.0.1") {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  ::inet_pton(AF_INET, host, &at.sin_addr);
  std::string answer;
  if (::connect(socket, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0) {
    const std::string asked = "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n";
    if (::send(socket, asked.data(), asked.size(), MSG_NOSIGNAL) > 0) {
      char part[4096];
      for (::ssize_t n; (n = ::recv(socket, part, sizeof part, 0)) > 0;) {
        answer.append(part, static_cast<std::size_t>(n));
      }
    }
  }
  ::close(socket);
  return answer;
}

}  // namespace reprise::test
