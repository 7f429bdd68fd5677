// Shows the text of several requests as it comes: the first one that is unfinished streams live,
// and the others are kept until their turn, so that a pipe and a terminal read the same.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "apps/reprise/utf8.hpp"

namespace reprise::app {

class text_display {
 public:
  // `prompts` are shown before each text. Tokens are bytes, or shown as numbers.
  text_display(std::FILE* to, std::vector<std::string> prompts, bool byte_tokens);

  void token(std::size_t request, std::int32_t token);
  // No more tokens of this request will come.
  void end(std::size_t request);

 private:
  struct entry {
    std::string prompt;
    std::string kept;  // what came before its turn
    bool ended = false;
  };

  void begin();
  void show(std::string_view bytes);

  std::FILE* to_;
  bool byte_tokens_;
  std::vector<entry> entries_;
  std::size_t current_ = 0;
  bool begun_ = false;
  utf8_filter filter_{true};
};

}  // namespace reprise::app
