#include "reprise/cuda/arch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "reprise/base/error.hpp"
#include "reprise/base/mutant.hpp"

namespace reprise::cuda {

namespace {

constexpr capability first_specific{9, 0};
constexpr capability first_family{10, 0};

// Newest first: what nvcc 13.0 can compile for.
constexpr std::array<capability, 12> known{{{12, 1},
                                            {12, 0},
                                            {11, 0},
                                            {10, 3},
                                            {10, 0},
                                            {9, 0},
                                            {8, 9},
                                            {8, 8},
                                            {8, 7},
                                            {8, 6},
                                            {8, 0},
                                            {7, 5}}};

// Of the majors that have other cards too.
bool embedded(capability c) {
  return c == capability{8, 7};
}

bool same_family(capability made_for, capability card) {
  return made_for.major == card.major && made_for <= card;
}

std::string number(const target& of) {
  constexpr std::array suffix{"", "f", "a"};
  return fmt::format("{}.{}{}", of.from.major, of.from.minor,
                     suffix[static_cast<std::size_t>(of.to)]);
}

std::string cell_arch(const target& of) {
  constexpr std::array suffix{"", "f", "a"};
  return fmt::format("sm_{}{}{}", of.from.major, of.from.minor,
                     suffix[static_cast<std::size_t>(of.to)]);
}

}  // namespace

std::optional<target> parse_target(std::string_view text) {
  target made;
  if (text.ends_with('a')) made.to = reach::exact;
  if (text.ends_with('f')) made.to = reach::family;
  if (made.to != reach::onward) text.remove_suffix(1);
  int number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  made.from = {number / 10, number % 10};
  const bool exists = number >= 10 && (made.to != reach::exact || made.from >= first_specific) &&
                      (made.to != reach::family || made.from >= first_family);
  return exists ? std::optional{made} : std::nullopt;
}

build parse_build(std::string_view list) {
  build made;
  while (!list.empty()) {
    const std::string_view whole = list.substr(0, list.find(' '));
    list.remove_prefix(std::min(list.size(), whole.size() + 1));
    if (whole.empty()) continue;
    std::string_view name = whole;
    const bool real = name.ends_with("-real");
    const bool is_virtual = name.ends_with("-virtual");
    if (real || is_virtual) name = name.substr(0, name.rfind('-'));
    const std::optional<target> parsed = parse_target(name);
    if (!parsed) {
      throw usage_error{fmt::format(
          "CUDA architecture {:?} is unknown; give one like 90, 90a or 100f, alone or with -real "
          "or -virtual",
          whole)};
    }
    if (!is_virtual) made.push_back({*parsed, false});
    if (!real) made.push_back({*parsed, true});
  }
  return made;
}

const build& this_build() {
  static const build compiled = parse_build(REPRISE_CUDA_CODE);
  return compiled;
}

bool runs(const built_code& code, capability card) {
  const capability from = code.made_for.from;
  if (from > card && !REPRISE_MUTANT(newer_code_is_offered)) return false;
  switch (code.made_for.to) {
    case reach::exact: return from == card || REPRISE_MUTANT(specific_code_is_taken_elsewhere);
    case reach::family: return same_family(from, card);
    case reach::onward: break;
  }
  if (code.ptx) return true;
  return from.major == card.major && embedded(from) == embedded(card);
}

const built_code* code_for(capability card, const build& of) {
  const built_code* best = nullptr;
  const auto order = [](const built_code& code) {
    return std::tuple{!code.ptx, code.made_for.from, code.made_for.to};
  };
  for (const built_code& code : of) {
    if (runs(code, card) && (best == nullptr || order(*best) < order(code))) best = &code;
  }
  return best;
}

bool serves(const built_code& code, const target& wanted) {
  switch (wanted.to) {
    case reach::exact: return code.made_for == wanted;
    case reach::family:
      return code.made_for.to != reach::onward && same_family(wanted.from, code.made_for.from);
    case reach::onward: break;
  }
  return wanted.from <= code.made_for.from;
}

std::vector<std::string> arch_chain(capability card, const build& of) {
  std::vector<std::string> chain;
  const built_code* const code = code_for(card, of);
  if (code == nullptr) return chain;
  const auto add = [&](const target& wanted) {
    if (serves(*code, wanted)) chain.push_back(cell_arch(wanted));
  };
  const auto add_all_of = [&](capability c) {
    if (c >= first_specific) add({c, reach::exact});
    if (c >= first_family) add({c, reach::family});
    add({c, reach::onward});
  };
  // Code for what this table does not know.
  if (std::ranges::find(known, code->made_for.from) == known.end()) add_all_of(code->made_for.from);
  for (const capability c : known) add_all_of(c);
  return chain;
}

std::string text_of(const built_code& code) {
  return fmt::format("{} for {}", code.ptx ? "PTX" : "machine code", number(code.made_for));
}

std::string text_of(const build& of) {
  std::string text;
  for (const built_code& code : of) text += (text.empty() ? "" : ", ") + text_of(code);
  return text.empty() ? "no code" : text;
}

}  // namespace reprise::cuda
