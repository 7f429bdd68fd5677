// Which code a card can run, of the code that this build was compiled to; and so which cells. No
// CUDA header is seen from here: the rules hold, and are tested, without a toolkit.
//
// nvcc compiles for targets, to machine code or to PTX:
//
//   target   machine code runs on                     PTX runs on
//   80       its major version, this minor or later   8.0 and everything later
//   100f     its family: the same, from 10.0 on       its family
//   90a      exactly 9.0                              exactly 9.0
//
// Machine code does not pass between the embedded cards (8.7) and the others. Where several run,
// the driver takes machine code before PTX. A cell that is from `sm_90` on may use what 9.0 has, so
// it is there only where the code that the driver takes was compiled for 9.0 or later: PTX of 8.0
// runs on a 9.0 card, and leaves such a body out.
// Source: CUDA C++ programming guide, "Application compatibility" and "Compute capabilities".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cuda {

struct capability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const capability&) const = default;
};

enum class reach : std::uint8_t { onward, family, exact };  // "", "f", "a"

// What code is compiled for, and what a cell asks for.
struct target {
  capability from;
  reach to = reach::onward;
  bool operator==(const target&) const = default;
};

struct built_code {
  target made_for;
  bool ptx = false;
  bool operator==(const built_code&) const = default;
};
using build = std::vector<built_code>;

// "80", "90a", "100f"; nothing for anything else.
std::optional<target> parse_target(std::string_view text);

// A list as CMake has it, with spaces: "80-virtual 90-real", "86" for both. Throws usage_error that
// names what is none.
build parse_build(std::string_view list);

// What this build was compiled to; empty without the CUDA half.
const build& this_build();

bool runs(const built_code& code, capability card);

// The code that the driver takes on this card; null where none runs.
const built_code* code_for(capability card, const build& of);

// Whether code may use all that a cell from `wanted` on does.
bool serves(const built_code& code, const target& wanted);

// Best first, the cells that are there on this card: "sm_90a", "sm_90", "sm_89", …
std::vector<std::string> arch_chain(capability card, const build& of);

// "machine code for 9.0a", "PTX for 8.0"; and of a whole build, "no code" where it is empty.
std::string text_of(const built_code& code);
std::string text_of(const build& of);

}  // namespace reprise::cuda
