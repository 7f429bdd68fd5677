// Mutants: rules that are broken on purpose, to show that a test fails when they are.
//
// `if (!REPRISE_MUTANT(pool_order_left_out)) order();` is plain `order();` in every build but the
// one of `./run mutants`, in which the variable REPRISE_MUTATE names the rule that is broken.
// tests/mutants.txt lists the mutants and the test that must fail for each.
#pragma once

#if defined(REPRISE_MUTANTS)

#include <cstdlib>
#include <string_view>

namespace reprise {

inline bool mutated(std::string_view name) {
  static const char* const chosen = std::getenv("REPRISE_MUTATE");
  return chosen != nullptr && name == chosen;
}

}  // namespace reprise
#define REPRISE_MUTANT(name) (::reprise::mutated(#name))

#else
#define REPRISE_MUTANT(name) false
#endif
