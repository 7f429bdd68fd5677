// Running the workload in tests, as the command runs it.
#pragma once

#include <string>
#include <vector>

#include "reprise/platform/platform.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/paths.hpp"
#include "workloads/decode/decode.hpp"

namespace reprise::test {

inline decode::decode_options tiny_options(const std::vector<std::string>& prompts,
                                           std::int64_t tokens) {
  decode::decode_options options;
  options.model = tiny_llama();
  for (const std::string& prompt : prompts) {
    options.prompts.push_back(decode::byte_tokens(prompt));
  }
  options.tokens = tokens;
  return options;
}

inline decode::decode_report run_on(const std::string& spec, const decode::decode_options& options,
                                    int threads = 0) {
  const device opened = open_for_test(spec, threads);
  return decode::run_decode(opened, options, [](std::size_t, const decode::request&) {});
}

inline std::vector<std::string> texts(const decode::decode_report& report) {
  std::vector<std::string> all;
  for (const decode::request& asked : report.requests) {
    all.push_back(decode::token_bytes(asked.generated));
  }
  return all;
}

}  // namespace reprise::test
