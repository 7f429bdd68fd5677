#include "workloads/decode/requests.hpp"

#include <fmt/format.h>

#include <map>

#include "reprise/base/error.hpp"

namespace reprise::decode {

std::string_view name_of(finish_reason why) {
  switch (why) {
    case finish_reason::running: return "running";
    case finish_reason::length: return "length";
    case finish_reason::stop: return "stop";
  }
  return "?";
}

std::vector<request> make_requests(const std::vector<std::vector<std::int32_t>>& prompts,
                                   const model_config& config) {
  std::vector<request> requests;
  std::map<std::vector<std::int32_t>, std::uint32_t> seen;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const std::vector<std::int32_t>& prompt = prompts[i];
    if (prompt.empty()) {
      throw usage_error{fmt::format("prompt {} is empty; give at least one token", i + 1)};
    }
    if (prompt.size() > static_cast<std::size_t>(config.context)) {
      throw usage_error{
          fmt::format("prompt {} has {} tokens and the model's context is {}; shorten it", i + 1,
                      prompt.size(), config.context)};
    }
    for (const std::int32_t token : prompt) {
      if (token < 0 || token >= config.vocabulary) {
        throw usage_error{
            fmt::format("prompt {}: token {} is not in the vocabulary of {}; give ids "
                        "from 0 to {}",
                        i + 1, token, config.vocabulary, config.vocabulary - 1)};
      }
    }
    requests.push_back({prompt, seen[prompt]++, {}, finish_reason::running});
  }
  return requests;
}

std::vector<std::int32_t> byte_tokens(std::string_view text) {
  std::vector<std::int32_t> tokens;
  tokens.reserve(text.size());
  for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  return tokens;
}

std::string token_bytes(const std::vector<std::int32_t>& tokens) {
  std::string text;
  text.reserve(tokens.size());
  for (const std::int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

}  // namespace reprise::decode
