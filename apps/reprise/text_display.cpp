#include "apps/reprise/text_display.hpp"

#include <fmt/format.h>

#include <utility>

namespace reprise::app {

text_display::text_display(std::FILE* to, std::vector<std::string> prompts, bool byte_tokens)
    : to_{to}, byte_tokens_{byte_tokens} {
  for (std::string& prompt : prompts) entries_.push_back({std::move(prompt), {}, false});
}

void text_display::token(std::size_t request, std::int32_t token) {
  const std::string text =
      byte_tokens_ ? std::string(1, static_cast<char>(token)) : fmt::format("{} ", token);
  if (request != current_) {
    entries_[request].kept += text;
    return;
  }
  if (!begun_) begin();
  show(text);
}

void text_display::end(std::size_t request) {
  entries_[request].ended = true;
  while (current_ < entries_.size() && entries_[current_].ended) {
    if (!begun_) begin();
    std::fputs(filter_.finish().c_str(), to_);
    std::fputs("\n\n", to_);
    ++current_;
    begun_ = false;
    if (current_ < entries_.size() && !entries_[current_].kept.empty()) begin();
  }
  std::fflush(to_);
}

void text_display::begin() {
  begun_ = true;
  const entry& now = entries_[current_];
  if (entries_.size() > 1) fmt::print(to_, "[{}] ", current_ + 1);
  show(now.prompt);
  show(now.kept);
}

void text_display::show(std::string_view bytes) {
  const std::string text = filter_.feed(bytes);
  std::fwrite(text.data(), 1, text.size(), to_);
  std::fflush(to_);
}

}  // namespace reprise::app
