// Bytes that a model made, as UTF-8 that a person or a JSON reader can take.
#pragma once

#include <string>
#include <string_view>

namespace reprise::app {

// Feeds on bytes as they come and gives out whole characters. A byte that can be part of no
// character becomes U+FFFD. With `for_terminal`, so do control characters that a terminal would
// obey; tab and newline stay.
class utf8_filter {
 public:
  explicit utf8_filter(bool for_terminal) : for_terminal_{for_terminal} {}

  std::string feed(std::string_view bytes);
  // Nothing more comes: an unfinished character is broken.
  std::string finish();

 private:
  void take(unsigned char byte, std::string& out);
  void drop(std::string& out);

  bool for_terminal_;
  std::string character_;  // what has come of one that is unfinished
  int missing_ = 0;        // bytes that it still needs
};

std::string as_utf8(std::string_view bytes);

}  // namespace reprise::app
