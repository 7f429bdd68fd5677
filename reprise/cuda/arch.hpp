// Which architectures' code a card can run, best first: the arch chain of a CUDA device.
#pragma once

#include <string>
#include <vector>

namespace reprise::cuda {

// For compute capability major.minor. CUDA's rules, in this order:
//   sm_90a    arch-specific code runs on exactly its own card (exists from 9.0 on)
//   sm_100f   family code runs on its card and on later minors of the same major (from 10.0 on)
//   sm_86     machine code runs on its card and on later minors of the same major
//   sm_80     and code of any older card can be built from PTX, which runs on everything later
std::vector<std::string> arch_chain(int major, int minor);

}  // namespace reprise::cuda
