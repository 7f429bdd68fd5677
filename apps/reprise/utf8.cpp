#include "apps/reprise/utf8.hpp"

namespace reprise::app {

namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";

// Bytes that follow a lead byte; -1 when it leads nothing (RFC 3629).
int following(unsigned char lead) {
  if (lead < 0x80) return 0;
  if (lead >= 0xC2 && lead <= 0xDF) return 1;
  if (lead >= 0xE0 && lead <= 0xEF) return 2;
  if (lead >= 0xF0 && lead <= 0xF4) return 3;
  return -1;
}

// The second byte of some characters has a narrower range: no overlong forms, no surrogates,
// nothing past U+10FFFF.
bool continues(std::string_view character, unsigned char byte) {
  if (byte < 0x80 || byte > 0xBF) return false;
  if (character.size() != 1) return true;
  switch (static_cast<unsigned char>(character[0])) {
    case 0xE0: return byte >= 0xA0;
    case 0xED: return byte <= 0x9F;
    case 0xF0: return byte >= 0x90;
    case 0xF4: return byte <= 0x8F;
    default: return true;
  }
}

bool is_control(unsigned char byte) {
  return (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
}

}  // namespace

std::string utf8_filter::feed(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) take(static_cast<unsigned char>(c), out);
  return out;
}

void utf8_filter::take(unsigned char byte, std::string& out) {
  if (missing_ > 0) {
    if (continues(character_, byte)) {
      character_ += static_cast<char>(byte);
      if (--missing_ != 0) return;
      // C1 controls (U+0080 to U+009F) are commands to some terminals.
      const bool c1 = character_.size() == 2 && character_[0] == '\xC2' && byte < 0xA0;
      out += for_terminal_ && c1 ? replacement : character_;
      character_.clear();
      return;
    }
    drop(out);
  }
  const int more = following(byte);
  if (more < 0 || (for_terminal_ && is_control(byte))) {
    out += replacement;
  } else if (more == 0) {
    out += static_cast<char>(byte);
  } else {
    character_ = static_cast<char>(byte);
    missing_ = more;
  }
}

void utf8_filter::drop(std::string& out) {
  out += replacement;
  character_.clear();
  missing_ = 0;
}

std::string utf8_filter::finish() {
  std::string out;
  if (missing_ > 0) drop(out);
  return out;
}

std::string as_utf8(std::string_view bytes) {
  utf8_filter filter{false};
  std::string text = filter.feed(bytes);
  return text + filter.finish();
}

}  // namespace reprise::app
