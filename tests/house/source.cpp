#include "tests/house/source.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace reprise::house {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 4> endings{".cpp", ".hpp", ".cu", ".cuh"};

bool part_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Blanks out comments and, if asked, what stands inside literals. One pass over the text.
class blanker {
 public:
  blanker(std::string_view text, bool literals) : text_{text}, out_{text}, literals_{literals} {}

  std::string run() {
    while (at_ < text_.size()) {
      if (starts("//")) {
        blank_to(std::min(text_.find('\n', at_), text_.size()));
      } else if (starts("/*")) {
        blank_to(after("*/", at_ + 2));
      } else if (starts("R\"") && (at_ == 0 || !part_of_word(text_[at_ - 1]))) {
        raw_literal();
      } else if (text_[at_] == '"' || (text_[at_] == '\'' && !between_digits())) {
        literal(text_[at_]);
      } else {
        ++at_;
      }
    }
    return std::move(out_);
  }

 private:
  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  std::size_t after(std::string_view what, std::size_t from) const {
    const auto found = text_.find(what, from);
    return found == std::string_view::npos ? text_.size() : found + what.size();
  }

  // 1'000'000
  bool between_digits() const { return at_ > 0 && part_of_word(text_[at_ - 1]); }

  void blank_to(std::size_t end) {
    for (; at_ < end; ++at_) {
      if (text_[at_] != '\n') out_[at_] = ' ';
    }
  }

  void raw_literal() {
    const auto open = std::min(text_.find('(', at_), text_.size() - 1);
    const auto close = std::string{")"}.append(text_.substr(at_ + 2, open - at_ - 2)).append("\"");
    const auto end = after(close, open);
    at_ = open;
    if (literals_) blank_to(end);
    at_ = end;
  }

  void literal(char quote) {
    auto end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2 : 1;
    }
    end = std::min(end, text_.size());
    ++at_;
    if (literals_) blank_to(end);
    at_ = end + 1;
  }

  std::string_view text_;
  std::string out_;
  bool literals_;
  std::size_t at_ = 0;
};

std::string read(const fs::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, {}};
}

}  // namespace

std::vector<source_file> sources_under(std::initializer_list<std::string_view> folders) {
  const fs::path root = REPRISE_SOURCE_DIR;
  std::vector<source_file> found;
  for (const auto folder : folders) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator{root / folder}) {
      const auto ending = entry.path().extension().string();
      if (!entry.is_regular_file() || std::ranges::find(endings, ending) == endings.end()) continue;
      found.push_back({entry.path().lexically_relative(root).generic_string(), read(entry.path())});
    }
  }
  std::ranges::sort(found, {}, &source_file::name);
  return found;
}

std::string without_comments(std::string_view text) {
  return blanker{text, false}.run();
}

std::string code_alone(std::string_view text) {
  return blanker{text, true}.run();
}

std::vector<include> includes_of(std::string_view text) {
  std::vector<include> found;
  int number = 0;
  for (const auto& line : lines_of(without_comments(text))) {
    ++number;
    std::istringstream words{line};
    std::string hash, word;
    words >> hash;
    if (hash == "#") {
      words >> word;
      hash += word;
    }
    if (!hash.starts_with("#include")) continue;
    const auto open = line.find_first_of("\"<");
    if (open == std::string::npos) continue;  // a macro names the file
    const auto close = line.find(line[open] == '<' ? '>' : '"', open + 1);
    found.push_back({number, line.substr(open + 1, close - open - 1), line[open] == '"'});
  }
  return found;
}

int line_of_word(std::string_view code, std::string_view word) {
  for (auto at = code.find(word); at != std::string_view::npos; at = code.find(word, at + 1)) {
    const auto end = at + word.size();
    if (at > 0 && part_of_word(code[at - 1])) continue;
    if (part_of_word(word.back()) && end < code.size() && part_of_word(code[end])) continue;
    return 1 + static_cast<int>(std::count(code.begin(), code.begin() + at, '\n'));
  }
  return 0;
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream in{std::string{text}};
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string fault(const source_file& file, int line, std::string_view what) {
  return file.name + ":" + std::to_string(line) + ": " + std::string{what};
}

std::string listed(const faults& all) {
  std::string text;
  for (const auto& one : all) text.append(one).append("\n");
  return text;
}

}  // namespace reprise::house
