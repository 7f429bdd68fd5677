// What a decode run is asked for, and what comes out of each prompt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/decode/model_config.hpp"

namespace reprise::decode {

struct sampling_options {
  bool greedy = true;
  float temperature = 1.0F;
  float top_p = 1.0F;
  std::uint64_t seed = 0;
};

// Why a request ended: the token budget or the context is full, or the model said that it is done.
enum class finish_reason : std::uint8_t { running, length, stop };
std::string_view name_of(finish_reason why);

struct request {
  std::vector<std::int32_t> prompt;
  // Of earlier requests with the same prompt: repeats of a prompt sample differently, and a prompt
  // samples the same alone or in company.
  std::uint32_t repeat = 0;

  std::vector<std::int32_t> generated;
  finish_reason finish = finish_reason::running;
};

// Counts repeats. Throws usage_error, naming the prompt by its number from 1, when one is empty,
// longer than the context, or has a token outside the vocabulary.
std::vector<request> make_requests(const std::vector<std::vector<std::int32_t>>& prompts,
                                   const model_config& config);

// Bytes as tokens.
std::vector<std::int32_t> byte_tokens(std::string_view text);
std::string token_bytes(const std::vector<std::int32_t>& tokens);

}  // namespace reprise::decode
