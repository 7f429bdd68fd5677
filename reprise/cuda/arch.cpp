#include "reprise/cuda/arch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <iterator>

namespace reprise::cuda {

namespace {

struct capability {
  int major;
  int minor;
  auto operator<=>(const capability&) const = default;
};

constexpr capability first_specific{9, 0};
constexpr capability first_family{10, 0};

// Newest first: what nvcc 13.0 can compile for.
constexpr capability known[] = {{12, 1}, {12, 0}, {11, 0}, {10, 3}, {10, 0}, {9, 0},
                                {8, 9},  {8, 8},  {8, 7},  {8, 6},  {8, 0},  {7, 5}};

}  // namespace

std::vector<std::string> arch_chain(int major, int minor) {
  const capability card{major, minor};
  std::vector<std::string> chain;
  const auto add = [&](capability c, const char* suffix) {
    chain.push_back(fmt::format("sm_{}{}{}", c.major, c.minor, suffix));
  };
  const auto add_code_of = [&](capability c) {
    if (c >= first_family && c.major == card.major) add(c, "f");
    add(c, "");
  };

  if (card >= first_specific) add(card, "a");
  if (std::ranges::find(known, card) == std::end(known))
    add_code_of(card);  // newer than this table
  for (const capability c : known) {
    if (c <= card) add_code_of(c);
  }
  return chain;
}

}  // namespace reprise::cuda
